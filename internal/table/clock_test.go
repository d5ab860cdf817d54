package table

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/schema"
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

// rested makes the clock one whose last answer came hours ago.
func (c *clock) rested(hours time.Duration) {
	now, _ := c.past()
	old := time.Now().Add(-hours * time.Hour)
	c.upper, c.lower = backend.Clock{}, floor{}
	c.upper.Observe(now.Add(-hours*time.Hour), old)
	c.lower.observe(now.Add(-hours*time.Hour), old)
}

// After hours without an answer the lower bound of the time lags by seconds: what is written by it would lie below the marks
// of other processes, and be found half a minute late.
func TestWritesAfterALongRest(t *testing.T) {
	t.Parallel()
	s := plain()
	s.Queue.KeyColumns = append(s.Queue.KeyColumns, schema.Column{Name: "Num", Type: schema.Int64()})
	s.OrderColumns = 1
	w := newWorld(t, plain())
	q := w.bare(Options{LeaseLength: long})
	lag := func(q *Queue, at time.Time) time.Duration {
		now, err := q.askTime(t.Context())
		require.NoError(t, err)
		return now.Sub(at)
	}
	w.send(q, "m0")
	q.clock.rested(10)
	past, _ := q.clock.past()
	require.Greater(t, lag(w.bare(Options{}), past), 30*time.Second, "or the test shows nothing")
	w.send(q, "m1")
	r, _ := w.find(q, "m1")
	require.Less(t, lag(q, r.visible), 20*time.Second, "sent now")

	ds := w.take(q, 2)
	q.clock.rested(10)
	require.NoError(t, q.Release(t.Context(), ds))
	r, _ = w.find(q, "m0")
	require.Less(t, lag(q, r.visible), 20*time.Second, "released now")

	w = newWorld(t, s)
	q = w.bare(Options{LeaseLength: long})
	require.NoError(t, q.Send(t.Context(), []backend.Outgoing{{Key: spanner.Key{"a", int64(1)}}, {Key: spanner.Key{"a", int64(2)}}}))
	d := w.take(q, 1)[0]
	fresh := w.bare(Options{}) // it has never asked for the time
	_, err := fresh.client.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		return fresh.Ack(ctx, tx, d)
	})
	require.NoError(t, err)
	row, err := q.client.Single().ReadRow(t.Context(), q.table, spanner.Key{"a", int64(2)}, q.columns.all)
	require.NoError(t, err)
	next, err := q.readRow(row)
	require.NoError(t, err)
	require.Less(t, lag(q, next.visible), 20*time.Second, "brought back now")
}
