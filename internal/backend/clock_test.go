package backend_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/stretchr/testify/require"
)

func TestClockIsNeverBehindTheDatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c backend.Clock
		_, ok := c.Now()
		require.False(t, ok, "a clock that was never told anything knows nothing")

		// The database's clock is half a minute off; the answer takes 3 s, and the stamp is made after 1 s of them.
		offset := -30 * time.Second
		sent := time.Now()
		time.Sleep(time.Second)
		stamp := time.Now().Add(offset)
		time.Sleep(2 * time.Second)
		c.Observe(stamp, sent)

		for range 10 {
			now, ok := c.Now()
			require.True(t, ok)
			truth := time.Now().Add(offset)
			require.False(t, now.Before(truth))
			require.LessOrEqual(t, now.Sub(truth), time.Second, "ahead by the way of the request at most")
			time.Sleep(5 * time.Second)
		}
	})
}

func TestClockForgetsAfterAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c backend.Clock
		c.Observe(time.Now(), time.Now())
		time.Sleep(time.Minute)
		_, ok := c.Now()
		require.True(t, ok)
		time.Sleep(time.Nanosecond)
		_, ok = c.Now()
		require.False(t, ok)
	})
}

func TestClockKeepsTheYoungestStamp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c backend.Clock
		first := time.Now()
		time.Sleep(time.Second)
		second := time.Now()
		c.Observe(second.Add(time.Hour), second)
		c.Observe(first, first) // an answer that was overtaken
		now, _ := c.Now()
		require.Equal(t, second.Add(time.Hour), now)
	})
}
