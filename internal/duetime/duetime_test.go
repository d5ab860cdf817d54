package duetime

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMark(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	seen := make(map[time.Time]bool)
	for _, d := range []time.Duration{0, 1, 500, 999, 1000, -time.Hour} {
		for range 1000 {
			given := at.Add(d)
			marked := Mark(given)
			require.True(t, marked.After(given), "never early: %v for %v", marked, given)
			require.Less(t, marked.Sub(given), 2*time.Microsecond)
			require.True(t, Marked(marked))
			seen[marked] = true
		}
	}
	require.Greater(t, len(seen), 1000, "marks of one time differ")
	require.False(t, Marked(at))
	require.False(t, Marked(at.Truncate(time.Second)))
	require.False(t, Marked(time.Time{}))
}

// A time before the year 1 or 1970 is no exception.
func TestMarkOldTimes(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Time{time.Unix(-1, 5), time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC)} {
		marked := Mark(at)
		require.True(t, marked.After(at))
		require.True(t, Marked(marked))
	}
}
