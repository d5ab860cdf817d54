package processor

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBackoff(t *testing.T) {
	t.Parallel()
	b := Backoff{}.withDefaults()
	for failures, want := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 10: 512 * time.Second, 11: 10 * time.Minute,
		100: 10 * time.Minute, math.MaxInt: 10 * time.Minute, 0: time.Second, -1: time.Second,
	} {
		require.Equal(t, want, b.ceiling(failures), "after %d failures", failures)
	}
	huge := Backoff{Min: 1, Max: math.MaxInt64}
	require.EqualValues(t, math.MaxInt64, huge.ceiling(math.MaxInt), "no number of failures overflows")
	require.Equal(t, time.Hour, Backoff{Min: time.Hour}.withDefaults().Max)

	seen := map[bool]int{}
	for range 1000 {
		d := b.delay(5)
		require.GreaterOrEqual(t, d, time.Duration(0))
		require.LessOrEqual(t, d, 16*time.Second)
		seen[d < 8*time.Second]++
	}
	require.Greater(t, seen[true], 300, "the jitter is full")
	require.Greater(t, seen[false], 300)
	require.NotPanics(t, func() { huge.delay(math.MaxInt) })
}
