package conformance_test

import (
	"context"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
)

func sends(h *house) {
	q := h.open()
	ctx := h.t.Context()
	one := outgoing("m1")
	require.NoError(h.t, q.Send(ctx, []queue.Outgoing{one}))
	require.ErrorIs(h.t, q.Send(ctx, []queue.Outgoing{outgoing("m0"), one}), queue.ErrExists, "all or nothing")
	require.NoError(h.t, q.Send(ctx, []queue.Outgoing{one}, queue.OrIgnore()))
	other := one
	other.Payload = []byte("b")
	require.ErrorIs(h.t, q.Send(ctx, []queue.Outgoing{other}, queue.OrIgnore()), queue.ErrMismatch)
	for _, refused := range []queue.Outgoing{
		{Key: spanner.Key{7}}, {Key: spanner.Key{"a", "b"}}, {}, {Key: spanner.Key{nil}},
		{Key: spanner.Key{"a"}, Priority: 1}, {Key: spanner.Key{"a"}, DeliverTime: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		require.ErrorIs(h.t, q.Send(ctx, []queue.Outgoing{outgoing("m0"), refused}), queue.ErrInvalid, "%+v", refused)
	}
	require.EqualValues(h.t, 1, h.left(q), "what is refused, is refused before anything is sent")
	many := ids(1200)[100:] // more than one transaction takes
	h.send(q, many...)
	require.EqualValues(h.t, 1+len(many), h.left(q))
}

func sendsInTransactions(h *house) {
	q, client := h.open(), h.connect()
	later := outgoing("m2")
	later.DeliverTime = time.Now().Add(time.Hour)
	send := func(end error) error {
		_, err := client.ReadWriteTransaction(h.t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			m, err := q.SendMutation(outgoing("m1"))
			if err != nil {
				return err
			}
			if err := tx.BufferWrite([]*spanner.Mutation{m}); err != nil {
				return err
			}
			s, err := q.SendStatement(later)
			if err != nil {
				return err
			}
			if _, err := tx.Update(ctx, s); err != nil {
				return err
			}
			return end
		})
		return err
	}
	require.ErrorIs(h.t, send(errNo), errNo)
	require.Zero(h.t, h.left(q), "what is rolled back was not sent")
	require.NoError(h.t, send(nil))
	s, err := q.Stats(h.t.Context())
	require.NoError(h.t, err)
	require.EqualValues(h.t, 1, s.Ready)
	require.EqualValues(h.t, 1, s.Delayed)
	require.Equal(h.t, spanner.Key{"m1"}, h.receive(q).Key)
}

func looks(h *house) {
	q := h.open()
	ctx := h.t.Context()
	s, err := q.Stats(ctx)
	require.NoError(h.t, err)
	require.Zero(h.t, s)
	late := outgoing("late")
	late.DeliverTime = time.Now().Add(time.Hour)
	require.NoError(h.t, q.Send(ctx, []queue.Outgoing{late}))
	h.send(q, "old")
	h.send(q, "now")
	for id, want := range map[string]queue.Presence{"old": queue.Moved, "late": queue.Moved, "nobody": queue.Gone} {
		found, err := q.Probe(ctx, &queue.Message{Key: spanner.Key{id}})
		require.NoError(h.t, err)
		require.Equal(h.t, want, found, "whether %s is in the queue", id)
	}
	_, err = q.Probe(ctx, &queue.Message{Key: spanner.Key{"a", "b"}})
	require.ErrorIs(h.t, err, queue.ErrInvalid)
	held := h.receive(q)
	s, err = q.Stats(ctx)
	require.NoError(h.t, err)
	require.EqualValues(h.t, 2, s.Ready, "leased ones are counted")
	require.EqualValues(h.t, 1, s.Delayed)

	peeked, err := q.Peek(ctx, 2)
	require.NoError(h.t, err)
	require.Len(h.t, peeked, 2)
	require.Equal(h.t, spanner.Key{"now"}, peeked[1].Key)
	require.Equal(h.t, spanner.Key{"old"}, peeked[0].Key)
	require.Equal(h.t, "payload of old", string(peeked[0].Payload))
	for _, m := range peeked {
		require.Zero(h.t, m.Lease, "%v is not held by who looks", m)
		require.False(h.t, m.LastOfBatch)
		require.Zero(h.t, m.Attempt)
		_, err := q.Renew(ctx, m.Lease)
		require.ErrorIs(h.t, err, queue.ErrInvalid)
	}
	// Whoever acknowledges what is peeked competes with the holder.
	for _, m := range peeked {
		if m.Key[0] == held.Key[0] {
			require.NoError(h.t, settle(ctx, q, m, nothing))
			require.ErrorIs(h.t, settle(ctx, q, held, nothing), queue.ErrNotHeld)
		}
	}
	held = h.receive(q)
	n, err := q.Purge(ctx)
	require.NoError(h.t, err)
	require.Equal(h.t, 2, n, "leased and delayed ones too")
	require.ErrorIs(h.t, settle(ctx, q, held, nothing), queue.ErrNotHeld)
	require.Zero(h.t, h.left(q))
}
