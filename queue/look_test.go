package queue_test

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

func (w *world) stats() queue.Stats {
	w.t.Helper()
	s, err := w.queue.Stats(w.t.Context())
	require.NoError(w.t, err)
	return s
}

func TestStats(t *testing.T) {
	t.Parallel()
	for name, offset := range map[string]time.Duration{"clocks agree": 0, "the database is ahead": 30 * time.Second, "the database is behind": -30 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorldWith(t, tasks, front.Options{ClockOffset: offset})
			require.Equal(t, queue.Stats{}, w.stats(), "an empty queue has no age")
			require.NoError(t, w.queue.Send(t.Context(), []queue.Outgoing{{Key: spanner.Key{"later"}, DeliverTime: w.later()}}))
			require.Equal(t, queue.Stats{Delayed: 1}, w.stats(), "what is not due has no age")

			began := time.Now()
			w.send("m1", "m2")
			w.receive(1) // a leased message is ready: nobody has acknowledged it
			require.Eventually(t, func() bool { return w.stats().OldestAge >= 100*time.Millisecond }, patience, 5*time.Millisecond)
			s := w.stats()
			require.EqualValues(t, 2, s.Ready)
			require.EqualValues(t, 1, s.Delayed)
			require.LessOrEqual(t, s.OldestAge, time.Since(began)+time.Second)
		})
	}
}

func TestPeek(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	hour := w.later()
	require.NoError(t, w.queue.Send(t.Context(), []queue.Outgoing{
		{Key: spanner.Key{"a third"}, DeliverTime: hour.Add(time.Nanosecond)},
		{Key: spanner.Key{"b second"}, DeliverTime: hour},
	}))
	w.send("c first")
	peeked, err := w.queue.Peek(t.Context(), 2)
	require.NoError(t, err)
	require.Equal(t, []string{"c first", "b second"}, ids(peeked))
	require.Equal(t, "payload of c first", string(peeked[0].Payload))
	require.Zero(t, peeked[0].Lease)
	all, err := w.queue.Peek(t.Context(), 100)
	require.NoError(t, err)
	require.Len(t, all, 3)

	_, err = w.queue.Renew(t.Context(), peeked[0].Lease)
	require.ErrorIs(t, err, queue.ErrInvalid)
	held := w.receive(1)[0]
	require.Equal(t, peeked[0].Key, held.Key, "peeking leases nothing")
	require.NoError(t, w.ack(peeked[0]), "a peeked message may be acknowledged")
	requireNotHeld(t, w.ack(held))

	_, err = w.queue.Peek(t.Context(), 0)
	require.ErrorIs(t, err, queue.ErrInvalid)
	require.ErrorContains(t, err, "0 messages")
}

func TestPurge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	n, err := w.queue.Purge(t.Context())
	require.NoError(t, err)
	require.Zero(t, n)

	held := w.one("held")
	w.send(names(2300)...)
	commits := w.fault(fault.Rule{Method: "Commit", Tag: "purge=Tasks", Do: fault.Delay(0)})
	n, err = w.queue.Purge(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2301, n)
	require.Equal(t, 3, commits.Matched())
	require.Zero(t, w.count())
	requireNotHeld(t, w.ack(held))
}

func TestPurgeThatFailsHalfWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	w.send(names(1500)...)
	w.fault(fault.Rule{Method: "Commit", Tag: "purge=Tasks", Nth: 2, Do: fault.Before(codes.PermissionDenied, "no DELETE")})
	n, err := w.queue.Purge(t.Context())
	require.Equal(t, codes.PermissionDenied, spanner.ErrCode(err))
	require.ErrorContains(t, err, "after 1000 messages")
	require.Equal(t, 1000, n)
	require.EqualValues(t, 500, w.count())

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = w.queue.Purge(ctx)
	require.Equal(t, codes.Canceled, spanner.ErrCode(err))
	require.EqualValues(t, 500, w.count())
}
