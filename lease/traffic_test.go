package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTraffic(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	tr := traffic{terms: terms{length: 8 * time.Second}, underWay: make(map[*call]time.Time)}
	check := func(now time.Time, wantCalls int, wantMore time.Duration, wantConfirm bool) {
		t.Helper()
		calls, more, mayConfirm := tr.room(now)
		require.Equal(t, wantCalls, calls)
		require.Equal(t, wantConfirm, mayConfirm)
		if wantMore == 0 {
			require.Zero(t, more)
		} else {
			require.Equal(t, wantMore, more.Sub(at))
		}
	}
	check(at, 4, 0, true)
	var calls []*call
	for i := range 5 {
		c := &call{first: i == 4}
		calls = append(calls, c)
		tr.sent(c, at.Add(time.Duration(i)*100*time.Millisecond))
	}
	check(at.Add(500*time.Millisecond), 0, time.Second, false)
	check(at.Add(time.Second), 0, 1100*time.Millisecond, false)
	check(at.Add(1100*time.Millisecond), 1, 1200*time.Millisecond, false)
	check(at.Add(1400*time.Millisecond), 4, 0, true)

	tr.answered(calls[0], true, at.Add(2*time.Second))
	require.Equal(t, 2*time.Second, tr.usual)
	tr.answered(calls[1], false, at.Add(9*time.Second))
	require.Equal(t, 2*time.Second, tr.usual, "a call that failed says nothing about how long one takes")
	tr.answered(calls[2], true, at.Add(210*time.Millisecond))
	require.Equal(t, 1750*time.Millisecond, tr.usual)
	require.Len(t, tr.underWay, 2)
}
