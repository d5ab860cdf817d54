package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMarks(t *testing.T) {
	t.Parallel()
	none, some := Config{HighWater: 1000}, Config{HighWater: 1000, LowWater: 100}
	for name, c := range map[string]struct {
		free   int
		freed  float64
		config Config
		want   marks
	}{
		"nobody wants anything":                 {0, 0, none, marks{high: 0, low: 0, batch: 1, short: true}},
		"less than one is not one":              {0, 0.9, none, marks{high: 0, low: 0, batch: 1, short: true}},
		"one slot":                              {1, 0, none, marks{high: 1, low: 0, batch: 1, short: true}},
		"four slots":                            {4, 0, none, marks{high: 4, low: 1, batch: 2, short: true}},
		"ten slots":                             {10, 0, none, marks{high: 10, low: 2, batch: 5}},
		"busy slots that become free often":     {0, 300, none, marks{high: 300, low: 75, batch: 20}},
		"very often: bounded":                   {10, 1e9, none, marks{high: 1000, low: 250, batch: 20}},
		"slow slots, but some are kept waiting": {0, 0, some, marks{high: 100, low: 25, batch: 20}},
		"fast slots: more than those that are":  {0, 300, some, marks{high: 300, low: 75, batch: 20}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, marksFor(c.free, c.freed, c.config))
		})
	}
	m := marks{high: 10, low: 5}
	require.True(t, m.open(5, true))
	require.False(t, m.open(6, true))
	require.True(t, m.open(9, false), "a stream that ended by itself is followed by the next")
	require.False(t, m.open(10, false))
	require.False(t, m.close(9))
	require.True(t, m.close(10))
	require.False(t, marks{}.open(0, false), "without demand no stream is opened")
	require.False(t, marks{}.open(0, true))
	require.True(t, marks{}.close(0), "and an open one is closed")
}

func TestDecaying(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	d := decaying{over: 5 * time.Second}
	require.Zero(t, d.read(now))
	for range 10_000 {
		now = now.Add(10 * time.Millisecond)
		d.add(now)
	}
	require.InDelta(t, 500, d.read(now), 1, "100 a second are about 500 in 5 s")
	require.Less(t, d.read(now.Add(time.Minute)), 0.01, "and forgotten after a minute")
}
