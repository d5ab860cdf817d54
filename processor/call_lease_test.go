package processor_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/lease"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

func renewals(action fault.Action, rule fault.Rule) fault.Rule {
	rule.Method, rule.SQL, rule.Do = "ExecuteStreamingSql", "RENEWLEASE_Q", action
	return rule
}

// refuseRenewals has all renewals refused from now on. A Call starts after one that succeeds.
func (w *world) refuseRenewals() *fault.Handle {
	return w.fault(renewals(fault.Before(codes.FailedPrecondition, "no"), fault.Rule{Nth: 1, Times: 1_000_000}))
}

// F06: a call that is longer than its lease keeps the message, also when a renewal is delayed, refused, or landed with its
// answer lost.
func TestF06CallLongerThanItsLease(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]*fault.Rule{
		"renewals are fine":          nil,
		"one is delayed":             ptr(renewals(fault.Delay(callLease/5), fault.Rule{Nth: 2})),
		"one is refused":             ptr(renewals(fault.Before(codes.Unavailable, "not now"), fault.Rule{Nth: 2})),
		"one lands, answer is lost":  ptr(renewals(fault.After(codes.Unavailable, "not now"), fault.Rule{Nth: 2})),
		"one lands, answer is wrong": ptr(renewals(fault.After(codes.FailedPrecondition, "no"), fault.Rule{Nth: 2})),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorldOf(t, callLease)
			w.send("m1")
			begun := make(chan struct{}, 100)
			var calls atomic.Int64
			long := call(func(ctx context.Context, _ *lease.Held) error {
				calls.Add(1)
				begun <- struct{}{}
				return sleep(ctx, callLease*5/2)
			})
			a := w.handle(w.queue, long)
			b := w.handle(w.openQueue(w.db.Client(t)), long)
			<-begun
			var h *fault.Handle
			if rule != nil {
				h = w.fault(*rule)
			}
			done := func(r *worker) int64 {
				f := r.Figures().Deliveries
				return f[processor.Done] + f[processor.SettledElsewhere]
			}
			wait(t, "the end", func() bool { return done(a)+done(b) == 1 })
			require.NoError(t, a.stop())
			require.NoError(t, b.stop())
			w.once("m1")
			if h != nil {
				require.Equal(t, 1, h.Applied())
			}
			if name == "one lands, answer is wrong" || name == "one lands, answer is lost" {
				return // the token is lost with the answer: the message may go to the other one, and takes effect once
			}
			require.EqualValues(t, 1, calls.Load())
			got := a.Figures().Receiver.Received + b.Figures().Receiver.Received
			require.EqualValues(t, 1, got, "the second worker receives nothing")
			require.GreaterOrEqual(t, a.Figures().Receiver.Renewed+b.Figures().Receiver.Renewed, int64(3))
		})
	}
}

func ptr[T any](v T) *T { return &v }

// F07 (a): the lease is lost while the handler runs, and another worker finishes the message.
func TestF07LeaseLostWhileRunning(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, callLease)
	w.send("m1")
	g := newGate()
	var cause atomic.Value
	a := w.handle(w.queue, call(func(ctx context.Context, _ *lease.Held) error {
		g.entered <- struct{}{}
		<-ctx.Done()
		cause.Store(context.Cause(ctx))
		return nil // as a handler that did not notice
	}))
	g.wait(t)
	refused := w.refuseRenewals()
	wait(t, "the context to end", func() bool { return cause.Load() != nil })
	require.ErrorIs(t, cause.Load().(error), lease.ErrLost)
	// Its nil settles only if the guard still holds, which it does here: nobody else had it yet.
	wait(t, "the end of the first", func() bool { return len(a.Figures().Deliveries) > 0 })
	refused.Remove()
	require.NoError(t, a.stop())
	b := w.work(addOne)
	wait(t, "the message to be handled", func() bool { return w.left("m1") == 0 })
	require.NoError(t, b.stop())
	w.once("m1")
}

// F07 (a), with another worker that finishes in between.
func TestF07LateHolderCommitsNothing(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, callLease)
	w.send("m1")
	g := newGate()
	a := w.handle(w.queue, call(func(context.Context, *lease.Held) error {
		g.pass()
		return nil
	}), func(c *processor.Config) { c.HandlerTimeout = patience })
	g.wait(t)
	refused := w.refuseRenewals()
	b := w.workOn(w.openQueue(w.db.Client(t)), addOne)
	b.outcome(processor.Done, 1)
	refused.Remove()
	close(g.open)
	wait(t, "the end of the first", func() bool { return len(a.Figures().Deliveries) > 0 })
	require.NoError(t, a.stop())
	require.NoError(t, b.stop())
	w.once("m1")
	require.Zero(t, a.Figures().Deliveries[processor.Done])
	require.Zero(t, a.Figures().Deliveries[processor.Retried], "a lost lease is no failure")
}

// F07 (b): a row that was on its way for longer than a lease does not start a call.
func TestF07NoStartOnADeadLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.fault(fault.Rule{Method: "ExecuteStreamingSql", SQL: "RECEIVE_Q", Rows: true, Nth: 1, Do: fault.Delay(leaseLength * 3 / 2)})
	var calls atomic.Int64
	a := w.handle(w.queue, call(func(_ context.Context, held *lease.Held) error {
		if calls.Add(1); held.Bound().IsZero() {
			return errors.New("it is not known whether the lease lives")
		}
		return nil
	}), maxAttempts(1))
	w.send("m1")
	w.applied(h)
	wait(t, "the message to be handled", func() bool { return w.left("m1") == 0 })
	require.NoError(t, a.stop())
	w.once("m1")
	require.EqualValues(t, 1, calls.Load())
}

// A call does not start unless a renewal has succeeded.
func TestNoCallWithoutARenewal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	refused := w.refuseRenewals()
	var calls atomic.Int64
	a := w.handle(w.queue, call(func(context.Context, *lease.Held) error {
		calls.Add(1)
		return nil
	}))
	w.send("m1")
	wait(t, "a lease that is lost", func() bool { return a.Figures().Deliveries[processor.LeaseLost] > 0 })
	require.Zero(t, calls.Load())
	refused.Remove()
	a.outcome(processor.Done, 1)
	require.NoError(t, a.stop())
	w.once("m1")
	require.EqualValues(t, 1, calls.Load())
}

// A message that is acknowledged cannot be renewed, and however late the answer comes, that is no lost lease.
func TestLateAnswerToSettleIsNoLostLease(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, callLease)
	h := w.fault(fault.Rule{Method: "Commit", Tag: "queue=Q", Nth: 1, Do: fault.DelayReply(callLease * 3 / 2)})
	r := w.handle(w.queue, call(func(context.Context, *lease.Held) error { return nil }),
		func(c *processor.Config) { c.CommitTimeout = patience })
	w.send("m1")
	w.applied(h)
	wait(t, "the end", func() bool { return len(r.Figures().Deliveries) > 0 })
	require.NoError(t, r.stop())
	require.Positive(t, r.Figures().Receiver.Unusable, "it was tried")
	require.Zero(t, r.Figures().Receiver.Lost)
	require.NotContains(t, r.logs.String(), "a lease has ended")
	w.once("m1")
}
