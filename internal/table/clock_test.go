package table

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestClockKeepsTheTimeBetweenItsBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c clock
		_, ok := c.now()
		require.False(t, ok)
		_, ok = c.past()
		require.False(t, ok)

		// The database's clock is two minutes behind. A commit takes 1 s to get there and 1 s to be answered.
		const offset = -2 * time.Minute
		database := func() time.Time { return time.Now().Add(offset) }
		sent := time.Now()
		time.Sleep(time.Second)
		stamp := database()
		time.Sleep(time.Second)
		c.committed(stamp, sent)
		for range 10 {
			now, _ := c.now()
			past, _ := c.past()
			require.False(t, now.Before(database()))
			require.LessOrEqual(t, now.Sub(database()), time.Second)
			require.False(t, past.After(database()))
			require.LessOrEqual(t, database().Sub(past), time.Second+10*time.Second/drift)
			time.Sleep(time.Second)
		}

		// A read's timestamp may be old; it is a lower bound all the same, and the better one wins.
		c.read(database().Add(-time.Hour))
		past, _ := c.past()
		require.LessOrEqual(t, database().Sub(past), time.Second+20*time.Second/drift)
		c.read(database())
		past, _ = c.past()
		require.Equal(t, database(), past)
		time.Sleep(1000 * time.Second)
		past, _ = c.past()
		require.Equal(t, database().Add(-time.Second), past, "a clock here may run fast")

		// The machine slept: its monotonic clock has missed three hours, which a read shows. The upper bound is not behind.
		c.read(database().Add(3 * time.Hour))
		now, _ := c.now()
		require.False(t, now.Before(database().Add(3*time.Hour)))
	})
}
