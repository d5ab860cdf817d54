package table

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestPauseIsNeverLongerThanItsBound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := pace{bound: time.Duration(rapid.Int64Range(int64(shortestPoll), int64(time.Hour)).Draw(t, "bound"))}
		last := time.Duration(0)
		for range rapid.IntRange(1, 50).Draw(t, "pauses") {
			wait := p.pause(0, false, rapid.Float64Range(0, 0.999999).Draw(t, "random"))
			require.LessOrEqual(t, wait, p.bound)
			require.GreaterOrEqual(t, wait, min(p.bound, shortestPoll)/2)
			require.LessOrEqual(t, wait, max(4*last, shortestPoll), "an idle queue is let go of step by step")
			last = wait
		}
	})
}

func TestPaceAdapts(t *testing.T) {
	t.Parallel()
	p := pace{bound: time.Second}
	var waits []time.Duration
	for range 9 {
		waits = append(waits, p.pause(0, false, 0.999999).Round(time.Millisecond))
	}
	ms := time.Millisecond
	require.Equal(t, []time.Duration{10 * ms, 20 * ms, 40 * ms, 80 * ms, 160 * ms, 320 * ms, 640 * ms, time.Second, time.Second}, waits)
	require.Equal(t, 300*ms, p.pause(300*ms, true, 0.9), "until the next message becomes visible, and no longer")
	require.Equal(t, 950*ms, p.pause(time.Hour, true, 0.9))
	require.Equal(t, shortestWait, p.pause(-time.Second, true, 0.9), "it is visible, or will be in this moment")
	p.found()
	require.Equal(t, shortestPoll/2, p.pause(0, false, 0), "where one came, another may")
}
