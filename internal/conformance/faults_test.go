package conformance_test

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

const reset = "stream terminated by RST_STREAM with error code: INTERNAL_ERROR"

// applied waits until the fault has happened.
func (h *house) applied(f *fault.Handle) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	require.NoError(h.t, f.Wait(ctx), "the fault was not applied")
}

// counting is a handler that counts its calls.
func (h *house) counting(calls *atomic.Int64) processor.Handler {
	return h.tx(func(_ context.Context, _ *queue.Message, effect func() error) error {
		calls.Add(1)
		return effect()
	})
}

// A's transaction is held up before its acknowledgement, its lease ends, and B does the work.
func twoOwners(h *house) {
	q := h.open()
	held := h.faults(fault.Rule{Tag: "handler=A", Nth: 1, Do: fault.Hold()})
	no := fault.Before(codes.FailedPrecondition, "no renewals today")
	lost := []*fault.Handle{h.faults(fault.Rule{SQL: "RENEWLEASE_Q", Do: no}), h.faults(fault.Rule{Tag: "renew=Q", Do: no})}
	var callsA, callsB atomic.Int64
	// A goes on to receive, and each claim of what it cannot renew counts as a start.
	a := h.work(h.counting(&callsA), func(c *processor.Config) { c.Name, c.Concurrency, c.MaxAttempts = "A", 1, 1000 })
	h.send(q, "m1")
	h.applied(held)
	b := h.work(h.counting(&callsB), func(c *processor.Config) { c.Name, c.MaxAttempts = "B", 1000 })
	h.wait("B to be done", func() bool { return b.ended(processor.Done) == 1 })
	held.Release()
	for _, l := range lost {
		l.Remove()
	}
	h.wait("A to learn it", func() bool { return a.ended(processor.Duplicate) == 1 })
	require.NoError(h.t, a.stop())
	require.NoError(h.t, b.stop())
	require.Zero(h.t, callsA.Load(), "the acknowledgement comes first")
	require.EqualValues(h.t, 1, callsB.Load())
	require.Zero(h.t, h.letters())
	h.once(q, "m1")
}

// The commits that postpone a message do not land, are aborted, or land and are not answered.
func laterUnderFaults(h *house) {
	q := h.open()
	const pause = 300 * time.Millisecond
	for i, action := range []fault.Action{
		fault.Before(codes.Internal, "broken"), fault.Abort(), fault.Drop(), fault.After(codes.Internal, reset), fault.After(codes.Unknown, "broken"),
	} {
		id := ids(9)[i]
		f := h.faults(fault.Rule{Method: "Commit", Tag: "queue=" + h.name, Nth: 1 + i%3, Do: action})
		h.send(q, id)
		var shown attempts
		w := h.work(h.later(pause, &shown), func(c *processor.Config) { c.MaxAttempts, c.CommitTimeout = 4, 500*time.Millisecond })
		h.oneUntilDone(q, id)
		h.applied(f)
		h.wait("the outcome", func() bool { return w.ended(processor.Done)+w.ended(processor.SettledElsewhere) == 1 })
		require.NoError(h.t, w.stop())
		require.Equal(h.t, []int{1, 2, 3, 4}, shown.list(), "%v", action)
		h.once(q, id)
	}
	require.Zero(h.t, h.letters())
}

// The database aborts a delivery's transaction four times: one attempt.
func abortsAreNoAttempts(h *house) {
	q := h.open()
	f := h.faults(fault.Rule{Method: "Commit", Tag: "queue=" + h.name, Nth: 1, Times: 4, Do: fault.Abort()})
	h.send(q, "m1")
	var shown attempts
	var calls atomic.Int64
	w := h.work(h.tx(func(_ context.Context, m *queue.Message, effect func() error) error {
		shown.note(m)
		calls.Add(1)
		return effect()
	}), func(c *processor.Config) { c.MaxAttempts = 1 })
	h.wait("it to be done", func() bool { return w.ended(processor.Done) == 1 })
	require.NoError(h.t, w.stop())
	require.Equal(h.t, 4, f.Applied())
	require.EqualValues(h.t, 5, calls.Load())
	require.EqualValues(h.t, 4, w.Figures().Aborts)
	require.Equal(h.t, []int{1}, shown.list())
	require.Len(h.t, w.Figures().Deliveries, 1)
	h.once(q, "m1")
}

func lostAnswers(h *house) {
	q := h.open()
	all := ids(8)
	tag := "queue=" + h.name
	var applied []*fault.Handle
	for i, action := range []fault.Action{
		fault.Drop(), fault.After(codes.Internal, "broken"), fault.After(codes.Unknown, "broken"), fault.After(codes.Internal, reset),
		fault.Before(codes.Unknown, "broken"), fault.Abort(), fault.Forget(),
	} {
		applied = append(applied, h.faults(fault.Rule{Method: "Commit", Tag: tag, Nth: i + 1, Do: action}))
	}
	h.send(q, all...)
	w := h.work(h.tx(just), func(c *processor.Config) { c.Concurrency = 1; c.CommitTimeout = 2 * time.Second })
	h.wait("all to be done", func() bool { return w.ended(processor.Done)+w.ended(processor.SettledElsewhere) == 8 })
	require.NoError(h.t, w.stop())
	h.once(q, all...)
	require.Zero(h.t, w.ended(processor.Retried)+w.ended(processor.DeadLettered))
	hit := 0
	for _, f := range applied {
		hit += f.Applied()
	}
	// A commit that a slow machine has timed out already may take a fault's turn; most of them must have hit.
	require.GreaterOrEqual(h.t, hit, len(applied)-2)
}
