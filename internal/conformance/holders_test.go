package conformance_test

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// settle runs a transaction that acknowledges, and does something besides.
func settle(ctx context.Context, q *queue.Queue, m *queue.Message, more func(context.Context, backend.Tx) error) error {
	return q.Backend().RunTx(ctx, backend.TxOptions{Tag: "late"}, func(ctx context.Context, tx backend.Tx) error {
		if err := tx.Ack(ctx, m.Delivery()); err != nil {
			return err
		}
		return more(ctx, tx)
	})
}

func nothing(context.Context, backend.Tx) error { return nil }

func lateHolderMisses(h *house) {
	q := h.open()
	h.send(q, "m1")
	late := h.receive(q)
	// Another one gets the message when the lease has ended, and settles it.
	other := h.open()
	next := h.receive(other)
	require.NoError(h.t, settle(h.t.Context(), other, next, func(ctx context.Context, tx backend.Tx) error {
		return h.effect(ctx, tx.Spanner(), next)
	}))
	for what, more := range map[string]func(context.Context, backend.Tx) error{
		"ack": nothing,
		"resend": func(ctx context.Context, tx backend.Tx) error {
			return tx.Send(ctx, backend.Outgoing{Key: late.Key, DeliverTime: time.Now().Add(time.Hour)})
		},
	} {
		require.ErrorIs(h.t, settle(h.t.Context(), q, late, more), queue.ErrNotHeld, what)
	}
	missing := 0
	err := q.Backend().RunTx(h.t.Context(), backend.TxOptions{}, func(ctx context.Context, tx backend.Tx) error {
		indexes, err := tx.AckAll(ctx, []backend.Delivery{late.Delivery()})
		missing = len(indexes)
		return err
	})
	require.NoError(h.t, err)
	require.Equal(h.t, 1, missing)
	renewed, err := q.Renew(h.t.Context(), late.Lease)
	require.NoError(h.t, err)
	require.False(h.t, renewed[0].Renewed)
	if r, ok := q.Backend().(backend.Releaser); ok {
		require.ErrorIs(h.t, r.Release(h.t.Context(), []backend.Delivery{late.Delivery()}), queue.ErrNotHeld)
	}
	h.once(q, "m1")
}

// F09: one handler that takes most of a lease, five messages at once, and another worker that looks for more.
func waitingIsKept(h *house) {
	q := h.open()
	all := ids(5)
	h.send(q, all...)
	var calls atomic.Int64
	handler := h.slow(&calls, 4*h.length/5)
	one := func(c *processor.Config) { c.Concurrency, c.Receiver.LowWater = 1, 5 }
	a, b := h.work(handler, one), h.work(handler, one)
	h.wait("all to be done", func() bool { return a.ended(processor.Done)+b.ended(processor.Done) == 5 })
	require.NoError(h.t, a.stop())
	require.NoError(h.t, b.stop())
	require.EqualValues(h.t, 5, calls.Load())
	h.once(q, all...)
}

func comesAndComesAgain(h *house) {
	q, other := h.open(), h.open()
	now, err := q.ServerTime(h.t.Context())
	require.NoError(h.t, err)
	due := now.Add(400*time.Millisecond + 123456789*time.Nanosecond)
	began := time.Now()
	out := outgoing("m1")
	out.DeliverTime = due
	require.NoError(h.t, q.Send(h.t.Context(), []queue.Outgoing{out}))
	first := h.receive(q)
	now, err = q.ServerTime(h.t.Context())
	require.NoError(h.t, err)
	require.False(h.t, now.Before(due), "it came before it was due")
	require.True(h.t, first.DeliverTime.Equal(due), "%v, want %v", first.DeliverTime, due)
	require.Equal(h.t, out.Key, first.Key)
	require.Equal(h.t, out.Payload, first.Payload)
	require.NotEmpty(h.t, first.Lease.Token)
	second := h.receive(other)
	require.GreaterOrEqual(h.t, time.Since(began), h.length, "its lease had not ended")
	require.True(h.t, second.DeliverTime.Equal(due), "a lease moves nothing")
	require.NotEqual(h.t, first.Lease.Token, second.Lease.Token)
	require.NoError(h.t, settle(h.t.Context(), other, second, nothing))
	for m, err := range q.Receive(h.t.Context(), queue.ReceiveOptions{MaxDuration: time.Second}) {
		h.t.Errorf("an empty queue gave %v, %v", m, err)
	}
}

func renewals(h *house) {
	q := h.open()
	h.send(q, "m1")
	m := h.receive(q)
	held := m.Lease
	for range 3 {
		answers, err := q.Renew(h.t.Context(), held)
		require.NoError(h.t, err)
		require.Len(h.t, answers, 1)
		require.True(h.t, answers[0].Renewed)
		require.True(h.t, answers[0].Lease.End.After(m.DeliverTime.Add(h.length)), "%v", answers[0].Lease.End)
		held = answers[0].Lease
	}
	_, err := q.Renew(h.t.Context(), held, queue.Lease{})
	require.ErrorIs(h.t, err, queue.ErrInvalid)
	answers, err := q.Renew(h.t.Context(), held, queue.Lease{Token: "no token of any queue"})
	require.NoError(h.t, err)
	require.True(h.t, answers[0].Renewed)
	require.False(h.t, answers[1].Renewed)
	require.NoError(h.t, settle(h.t.Context(), q, m, nothing), "an ack needs no token of the last renewal")
	answers, err = q.Renew(h.t.Context(), answers[0].Lease)
	require.NoError(h.t, err)
	require.False(h.t, answers[0].Renewed, "it was acknowledged")
}

func givenBack(h *house) {
	q, other := h.open(queue.LeaseLength(time.Hour)), h.open()
	h.send(q, "m1")
	m := h.receive(q)
	require.Equal(h.t, 1, m.Attempt)
	require.NoError(h.t, q.Backend().(backend.Releaser).Release(h.t.Context(), []backend.Delivery{m.Delivery()}))
	again := h.receive(other) // long before the lease ends
	require.Equal(h.t, 1, again.Attempt, "what was given back is no attempt")
	require.ErrorIs(h.t, settle(h.t.Context(), q, m, nothing), queue.ErrNotHeld)
	require.NoError(h.t, settle(h.t.Context(), other, again, nothing))
}

func resendIsAnother(h *house) {
	q := h.open()
	h.send(q, "m1")
	first := h.receive(q)
	now, err := q.ServerTime(h.t.Context())
	require.NoError(h.t, err)
	at := now.Add(time.Second) // a time that is past by the commit would be replaced
	require.NoError(h.t, settle(h.t.Context(), q, first, func(ctx context.Context, tx backend.Tx) error {
		return tx.Send(ctx, backend.Outgoing{Key: first.Key, Payload: []byte("further"), DeliverTime: at})
	}))
	require.ErrorIs(h.t, settle(h.t.Context(), q, first, nothing), queue.ErrNotHeld, "the first delivery is gone")
	found, err := q.Probe(h.t.Context(), first)
	require.NoError(h.t, err)
	require.Equal(h.t, queue.Moved, found)
	second := h.receive(q)
	require.True(h.t, second.DeliverTime.Equal(at), "%v, want %v", second.DeliverTime, at)
	require.Equal(h.t, "further", string(second.Payload))
	found, err = q.Probe(h.t.Context(), second)
	require.NoError(h.t, err)
	require.Equal(h.t, queue.Present, found)
	require.NoError(h.t, settle(h.t.Context(), q, second, nothing))
	found, err = q.Probe(h.t.Context(), second)
	require.NoError(h.t, err)
	require.Equal(h.t, queue.Gone, found)
}

// Of a batch with a message that somebody else has settled, the others are settled.
func missingAreNamed(h *house) {
	q := h.open()
	h.send(q, ids(3)...)
	var ds []backend.Delivery
	for m, err := range q.Receive(h.t.Context(), queue.ReceiveOptions{MaxDuration: patience}) {
		require.NoError(h.t, err)
		if ds = append(ds, m.Delivery()); len(ds) == 3 {
			break
		}
	}
	run := func(f func(context.Context, backend.Tx) error) error {
		return q.Backend().RunTx(h.t.Context(), backend.TxOptions{Tag: "batch"}, f)
	}
	require.NoError(h.t, run(func(ctx context.Context, tx backend.Tx) error { return tx.Ack(ctx, ds[1]) }))
	var missing []int
	require.NoError(h.t, run(func(ctx context.Context, tx backend.Tx) (err error) {
		missing, err = tx.AckAll(ctx, ds)
		return err
	}))
	require.Equal(h.t, []int{1}, missing)
	require.Zero(h.t, h.left(q))
}

// The exported calls, in transactions of the caller's own. An error that is swallowed keeps them from committing.
func callersTransactions(h *house) {
	q, client, ctx := h.open(), h.connect(), h.t.Context()
	run := func(f func(context.Context, *spanner.ReadWriteTransaction) error) error {
		_, err := client.ReadWriteTransaction(ctx, f)
		return err
	}
	h.send(q, "m1")
	m := h.receive(q)
	stale := *m
	stale.DeliverTime = m.DeliverTime.Add(-time.Second)
	require.Error(h.t, run(func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		err := q.Ack(ctx, tx, &stale)
		if spanner.ErrCode(err) == codes.Aborted {
			return err // and the client runs the function again
		}
		require.ErrorIs(h.t, err, queue.ErrNotHeld, "a delivery before this one")
		return h.effect(ctx, tx, m)
	}), "the miss was swallowed")
	require.Zero(h.t, h.effects("m1"))

	now, err := q.ServerTime(ctx)
	require.NoError(h.t, err)
	at := now.Add(time.Second)
	require.ErrorIs(h.t, run(func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		return q.Resend(ctx, tx, m, m.DeliverTime, nil)
	}), queue.ErrInvalid, "the new time is the old one")
	require.NoError(h.t, run(func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		return q.Resend(ctx, tx, m, at, nil)
	}))
	m = h.receive(q)
	require.True(h.t, m.DeliverTime.Equal(at))
	require.Equal(h.t, "payload of m1", string(m.Payload))
	require.LessOrEqual(h.t, m.Attempt, 1, "its attempts begin anew")
	require.NoError(h.t, run(func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		missing, err := q.AckAll(ctx, tx, []*queue.Message{m, &stale})
		if err != nil {
			return err
		}
		if len(missing) != 1 || missing[0] != &stale {
			return errors.New("the stale one is missing, and it alone")
		}
		return h.effect(ctx, tx, m)
	}))
	h.once(q, "m1")

	h.send(q, "m2")
	m = h.receive(q)
	require.Error(h.t, run(func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		for range 2 { // the work twice, in one transaction
			if err := q.Ack(ctx, tx, m); err != nil {
				return err
			}
			if err := h.effect(ctx, tx, m); err != nil {
				return err
			}
		}
		return nil
	}))
	require.Zero(h.t, h.effects("m2"))
	require.NoError(h.t, run(func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		if err := q.Ack(ctx, tx, m); err != nil {
			return err
		}
		return h.effect(ctx, tx, m)
	}))
	h.once(q, "m2")
}
