package table

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/stretchr/testify/require"
)

func TestReleaseGivesBackAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	q := w.bare(Options{LeaseLength: long})
	w.send(q, ids(3)...)
	ds := w.take(q, 3)
	require.NoError(t, ack(t.Context(), q, ds[1]))
	require.ErrorIs(t, q.Release(t.Context(), ds), backend.ErrNotHeld, "one of them was gone")
	require.ErrorIs(t, q.Release(t.Context(), ds[:1]), backend.ErrNotHeld)
	again := w.takeNow(q)
	require.Len(t, again, 2, "the others were given back all the same")
	for _, d := range again {
		require.Equal(t, &backend.Record{}, d.Record, "a release takes the attempt back")
		require.ErrorIs(t, ack(t.Context(), q, ds[0]), backend.ErrNotHeld)
		require.NoError(t, ack(t.Context(), q, d))
	}
}

// An attempt is taken back once, whether by Release, by TakeBack, or by both.
func TestAttemptsAreTakenBackOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	q := w.bare(Options{LeaseLength: soon})
	attempts := func() int64 {
		r, _ := w.find(q, "m1")
		return r.attempts
	}
	w.send(q, "m1")
	w.take(q, 1)      // the first claim comes to nothing
	d := w.take(q, 1) // its lease has ended
	require.Equal(t, 1, d[0].Record.Starts)
	require.False(t, d[0].Record.First.IsZero())
	require.EqualValues(t, 2, attempts())
	require.NoError(t, q.TakeBack(t.Context(), d[0]))
	require.EqualValues(t, 1, attempts())
	require.NoError(t, q.TakeBack(t.Context(), d[0]))
	require.NoError(t, q.Release(t.Context(), d))
	require.EqualValues(t, 1, attempts())
	r, _ := w.find(q, "m1")
	require.True(t, r.first.Valid, "there was a first attempt")
}

// What the processor writes down of a message that failed or was put off is what its next delivery shows.
func TestRecordsAreKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	q := w.bare(Options{LeaseLength: long})
	w.send(q, "m1")
	due := time.Time{}
	resend := func(r backend.Record) (first spanner.NullTime, next backend.Record) {
		d := w.take(q, 1)[0]
		known, err := q.Begin(t.Context(), []backend.Delivery{d})
		require.NoError(t, err)
		require.Equal(t, []backend.Record{*d.Record}, known)
		before, _ := w.find(q, "m1")
		due = d.DeliverTime.Add(time.Microsecond)
		require.NoError(t, q.RunTx(t.Context(), backend.TxOptions{}, func(ctx context.Context, tx backend.Tx) error {
			if err := tx.Ack(ctx, d); err != nil {
				return err
			}
			out := backend.Outgoing{Key: d.Key, Payload: d.Payload, DeliverTime: due}
			if err := tx.Send(ctx, out); err != nil {
				return err
			}
			return tx.(backend.LedgerTx).Keep(ctx, out, r)
		}))
		return before.first, *w.peekRecord(q, "m1")
	}
	_, next := resend(backend.Record{Deferrals: 1})
	require.Equal(t, backend.Record{Deferrals: 1}, next, "a deferral is no attempt")
	first, next := resend(backend.Record{Deferrals: 1, Failures: 1})
	require.Equal(t, backend.Record{Deferrals: 1, Failures: 1, First: first.Time}, next)
	_, next = resend(backend.Record{Deferrals: 1, Failures: 2, First: first.Time})
	require.Equal(t, backend.Record{Deferrals: 1, Failures: 2, First: first.Time}, next)
	_, next = resend(backend.Record{Deferrals: 2, Failures: 2, Starts: 1, First: first.Time})
	require.Equal(t, backend.Record{Deferrals: 2, Failures: 2, Starts: 1, First: first.Time}, next)
}
