package boottime

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What was read too low is made good by the next reading, what is no suspension does not count, and nothing ever goes back.
func TestGaugeKeepsTheHighest(t *testing.T) {
	t.Parallel()
	next := time.Hour // before this program started
	read := func() time.Duration { return next }
	g := newGauge(read)
	require.Zero(t, g.read(read))
	for _, step := range []struct{ reads, want time.Duration }{
		{time.Hour - time.Millisecond, 0}, // held up in it
		{time.Hour + time.Millisecond, 0},
		{time.Hour + time.Minute, time.Minute},
		{time.Hour, time.Minute},
		{time.Hour + 2*time.Minute, 2 * time.Minute},
	} {
		next = step.reads
		require.Equal(t, step.want, g.read(read))
	}
}

// While the machine is awake this clock goes as the usual one does.
func TestNowGoesOn(t *testing.T) {
	t.Parallel()
	before, usual := Now(), time.Now()
	for range 10_000 {
		now := Now()
		require.False(t, now.Before(before))
		before = now
	}
	require.Less(t, before.Sub(usual)-time.Since(usual), time.Minute)
}

func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		Now()
	}
}
