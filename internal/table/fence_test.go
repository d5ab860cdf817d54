package table

import (
	"context"
	"errors"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

const effectsTable = `CREATE TABLE Effects (Id STRING(64) NOT NULL, N INT64 NOT NULL) PRIMARY KEY (Id)`

// addOne is the work of a message: it adds to a number, so that work done twice shows.
func addOne(ctx context.Context, tx *spanner.ReadWriteTransaction, id string) error {
	n, err := readN(tx.ReadRow(ctx, "Effects", spanner.Key{id}, []string{"N"}))
	if err != nil {
		return err
	}
	return tx.BufferWrite([]*spanner.Mutation{spanner.InsertOrUpdate("Effects", []string{"Id", "N"}, []any{id, n + 1})})
}

func readN(r *spanner.Row, err error) (n int64, _ error) {
	if errors.Is(err, spanner.ErrRowNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return n, r.Columns(&n)
}

func (w *world) effects(q *Queue, id string) int64 {
	w.t.Helper()
	n, err := readN(q.client.Single().ReadRow(w.t.Context(), "Effects", spanner.Key{id}, []string{"N"}))
	require.NoError(w.t, err)
	return n
}

// work acknowledges the delivery and does its work in one transaction.
func work(ctx context.Context, q *Queue, d backend.Delivery) error {
	return q.RunTx(ctx, backend.TxOptions{Tag: "work"}, func(ctx context.Context, tx backend.Tx) error {
		if err := tx.Ack(ctx, d); err != nil {
			return err
		}
		return addOne(ctx, tx.Spanner(), d.Key[0].(string))
	})
}

// soon is a lease that ends during a test.
const soon = 300 * time.Millisecond

// loseLease has a take m1, and b take it when a's lease has ended.
func (w *world) loseLease(a, b *Queue) (late, present backend.Delivery) {
	w.t.Helper()
	w.send(a, "m1")
	late = w.take(a, 1)[0]
	present = w.take(b, 1)[0]
	require.Equal(w.t, late.Key, present.Key)
	require.True(w.t, late.DeliverTime.Equal(present.DeliverTime), "a lease does not touch the due time")
	require.NotEqual(w.t, late.Token, present.Token)
	return late, present
}

// F01: two owners both finish one message. The late one's every write misses.
func TestF01LateHoldersEveryWriteMisses(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for name, do := range map[string]func(q *Queue, d backend.Delivery) error{
		"work": func(q *Queue, d backend.Delivery) error { return work(ctx, q, d) },
		"acknowledge last": func(q *Queue, d backend.Delivery) error {
			_, err := q.client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
				if err := addOne(ctx, tx, "m1"); err != nil {
					return err
				}
				return q.Ack(ctx, tx, d)
			})
			return err
		},
		"acknowledge in a transaction held by hand": func(q *Queue, d backend.Delivery) error {
			tx, err := spanner.NewReadWriteStmtBasedTransaction(ctx, q.client)
			require.NoError(t, err)
			defer tx.Rollback(ctx)
			return q.Ack(ctx, tx, d)
		},
		"acknowledge in a batch": func(q *Queue, d backend.Delivery) error {
			return q.RunTx(ctx, backend.TxOptions{}, func(ctx context.Context, tx backend.Tx) error {
				missing, err := tx.AckAll(ctx, []backend.Delivery{d})
				require.Equal(t, []int{0}, missing)
				return errors.Join(err, backend.ErrNotHeld)
			})
		},
		"resend, which is also how it is retried, deferred and checkpointed": func(q *Queue, d backend.Delivery) error {
			return q.RunTx(ctx, backend.TxOptions{}, func(ctx context.Context, tx backend.Tx) error {
				if err := tx.Ack(ctx, d); err != nil {
					return err
				}
				return tx.Send(ctx, backend.Outgoing{Key: d.Key, Payload: d.Payload, DeliverTime: d.DeliverTime.Add(time.Hour)})
			})
		},
		"renew": func(q *Queue, d backend.Delivery) error {
			answers, err := q.Renew(ctx, []string{d.Token})
			require.NoError(t, err)
			require.Empty(t, answers, "a dead token has no answer")
			return backend.ErrNotHeld
		},
		"release": func(q *Queue, d backend.Delivery) error { return q.Release(ctx, []backend.Delivery{d}) },
		"take back the attempt": func(q *Queue, d backend.Delivery) error {
			require.NoError(t, q.TakeBack(ctx, d))
			return backend.ErrNotHeld
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, plain(), effectsTable)
			a, b := w.bare(Options{LeaseLength: soon}), w.bare(Options{LeaseLength: long})
			late, present := w.loseLease(a, b)
			before, _ := w.find(b, "m1")
			require.EqualValues(t, 2, before.attempts)

			require.ErrorIs(t, do(a, late), backend.ErrNotHeld)

			after, there := w.find(b, "m1")
			require.True(t, there)
			require.Equal(t, before, after, "the row is as it was")
			require.Zero(t, w.effects(b, "m1"), "nothing of the late holder's transaction is kept")
			require.NoError(t, work(t.Context(), b, present))
			require.EqualValues(t, 1, w.effects(b, "m1"))
			require.ErrorIs(t, do(a, late), backend.ErrNotHeld, "and when the message is gone")
			require.EqualValues(t, 1, w.effects(b, "m1"))
		})
	}
}

// F01 as it was reported: the late holder has begun, and is held back until the other has committed.
func TestF01TransactionThatIsOvertaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(), effectsTable)
	a, b := w.front(Options{LeaseLength: soon}), w.front(Options{LeaseLength: long})
	late, present := w.loseLease(a, b)
	calls := 0
	err := a.RunTx(t.Context(), backend.TxOptions{Tag: "late"}, func(ctx context.Context, tx backend.Tx) error {
		if calls++; calls == 1 {
			require.NoError(t, work(t.Context(), b, present))
		}
		return tx.Ack(ctx, late)
	})
	require.ErrorIs(t, err, backend.ErrNotHeld)
	require.Equal(t, 1, calls, "a miss is no failed statement: the function is not run again")
	require.EqualValues(t, 1, w.effects(b, "m1"))
}

// A miss that is swallowed commits nothing.
func TestFailedAckPoisonsTheTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(), effectsTable)
	q := w.bare(Options{LeaseLength: long})
	w.send(q, "m1")
	d := w.take(q, 1)[0]
	require.NoError(t, ack(t.Context(), q, d))

	_, err := q.client.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		_ = q.Ack(ctx, tx, d)
		return addOne(ctx, tx, "m1")
	})
	require.Equal(t, codes.NotFound, spanner.ErrCode(err))
	require.ErrorContains(t, err, "spanqueue_message_not_held")

	byHand, err := spanner.NewReadWriteStmtBasedTransaction(t.Context(), q.client)
	require.NoError(t, err)
	require.ErrorIs(t, q.Ack(t.Context(), byHand, d), backend.ErrNotHeld)
	require.NoError(t, byHand.BufferWrite([]*spanner.Mutation{spanner.Insert("Effects", []string{"Id", "N"}, []any{"m1", 1})}))
	_, err = byHand.Commit(t.Context())
	require.Equal(t, codes.NotFound, spanner.ErrCode(err))
	require.Zero(t, w.effects(q, "m1"))
}

// The token alone does not do: a message that was sent again under its key is another one, claimed or not.
func TestGuardKnowsTheDelivery(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	q := w.bare(Options{LeaseLength: long})
	w.send(q, "m1")
	first := w.take(q, 1)[0]
	later := first.DeliverTime.Add(time.Hour)
	resend := func(ctx context.Context, tx backend.Tx) error {
		if err := tx.Ack(ctx, first); err != nil {
			return err
		}
		return tx.Send(ctx, backend.Outgoing{Key: first.Key, Payload: first.Payload, DeliverTime: later})
	}
	require.NoError(t, q.RunTx(t.Context(), backend.TxOptions{}, resend))
	require.ErrorIs(t, q.RunTx(t.Context(), backend.TxOptions{}, resend), backend.ErrNotHeld, "a second run must not take its own message")
	require.ErrorIs(t, ack(t.Context(), q, first), backend.ErrNotHeld)

	presence := func(d backend.Delivery) backend.Presence {
		p, err := q.Probe(t.Context(), d)
		require.NoError(t, err)
		return p
	}
	deferred := backend.Delivery{Key: first.Key, DeliverTime: later} // as its sender knows it: nobody has claimed it
	require.Equal(t, backend.Moved, presence(first))
	require.Equal(t, backend.Present, presence(deferred))
	wrong := deferred
	wrong.Token = first.Token
	require.Equal(t, backend.Moved, presence(wrong))
	require.ErrorIs(t, ack(t.Context(), q, wrong), backend.ErrNotHeld)

	// Deferred once more, it has no token before or after: only the due time tells the two apart.
	next := deferred
	next.DeliverTime = later.Add(time.Hour)
	again := func(ctx context.Context, tx backend.Tx) error {
		if err := tx.Ack(ctx, deferred); err != nil {
			return err
		}
		return tx.Send(ctx, backend.Outgoing{Key: first.Key, Payload: first.Payload, DeliverTime: next.DeliverTime})
	}
	require.NoError(t, q.RunTx(t.Context(), backend.TxOptions{}, again))
	require.ErrorIs(t, q.RunTx(t.Context(), backend.TxOptions{}, again), backend.ErrNotHeld)
	require.Equal(t, backend.Moved, presence(deferred))
	require.NoError(t, ack(t.Context(), q, next))
	require.Equal(t, backend.Gone, presence(next))
}

func TestAckAllNamesTheMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(), effectsTable)
	q := w.bare(Options{LeaseLength: long})
	w.send(q, ids(6)...)
	ds := w.take(q, 6)
	require.NoError(t, ack(t.Context(), q, ds[1]))
	require.NoError(t, q.Release(t.Context(), ds[4:5]))
	var missing []int
	require.NoError(t, q.RunTx(t.Context(), backend.TxOptions{}, func(ctx context.Context, tx backend.Tx) (err error) {
		missing, err = tx.AckAll(ctx, append(ds, ds[0]))
		return err
	}))
	require.Equal(t, []int{1, 4, 6}, missing, "gone, given back, and given twice")
	require.NoError(t, q.RunTx(t.Context(), backend.TxOptions{}, func(ctx context.Context, tx backend.Tx) error {
		none, err := tx.AckAll(ctx, nil)
		require.Empty(t, none)
		return err
	}))
	require.NoError(t, q.Release(t.Context(), nil))
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, stats.Ready, "the one that was given back")
}
