package processor_test

import (
	"bytes"
	"context"
	"errors"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/lease"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// call makes a handler whose Settle has the effect.
func call(f func(context.Context, *lease.Held) error) processor.Call[struct{}] {
	return processor.Call[struct{}]{
		Call: func(ctx context.Context, h *lease.Held) (struct{}, error) { return struct{}{}, f(ctx, h) },
		Settle: func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message, _ struct{}) error {
			return addOne(ctx, tx, m)
		},
	}
}

// callLease is the length of leases where a test goes wrong when one ends for no other reason than that the machine is busy.
const callLease = 2 * time.Second

// sleep is work of the given length that watches its context.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

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
	a := w.handle(w.queue, call(func(context.Context, *lease.Held) error {
		calls.Add(1)
		return nil
	}))
	w.send("m1")
	w.applied(h)
	wait(t, "the message to be handled", func() bool { return w.left("m1") == 0 })
	require.NoError(t, a.stop())
	w.once("m1")
	require.EqualValues(t, 1, calls.Load())
}

// A stop does not wait for a lease that nobody answers for.
func TestStopBeforeTheCall(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, patience)
	h := w.fault(renewals(fault.Delay(2*patience), fault.Rule{Nth: 1, Times: 1_000_000}))
	var calls atomic.Int64
	r := w.handle(w.queue, call(func(context.Context, *lease.Held) error {
		calls.Add(1)
		return nil
	}), func(c *processor.Config) { c.DrainTimeout = 10 * time.Millisecond })
	w.send("m1")
	w.applied(h)
	require.NoError(t, r.stop())
	require.Zero(t, calls.Load())
	require.Equal(t, map[processor.Outcome]int64{processor.Interrupted: 1}, r.Figures().Deliveries)
	require.Equal(t, 1, w.left("m1"))
}

// F08: the handler is told when its time is over, and one that does not listen gives its slot up within a stated bound.
func TestF08HandlerTimeout(t *testing.T) {
	t.Parallel()
	for name, listens := range map[string]bool{"it listens": true, "it does not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g := newGate()
			var told atomic.Int64
			started := make(chan time.Time, 10)
			a := w.handle(w.queue, call(func(ctx context.Context, h *lease.Held) error {
				if h.Message().Key[0] == "m2" {
					return nil
				}
				started <- time.Now()
				<-ctx.Done()
				if errors.Is(context.Cause(ctx), processor.ErrHandlerTimeout) {
					told.Add(1)
				}
				if listens {
					return ctx.Err()
				}
				g.pass()
				return nil
			}), maxAttempts(1), func(c *processor.Config) { c.Concurrency = 1; c.HandlerTimeout = 300 * time.Millisecond })
			w.send("m1")
			begun := <-started
			w.send("m2")
			a.outcome(processor.Done, 1)
			require.Less(t, time.Since(begun), 10*time.Second, "the slot was given up")
			a.outcome(processor.DeadLettered, 1)
			require.EqualValues(t, 1, told.Load())
			if !listens {
				err := a.stop()
				var abandoned *processor.AbandonedError
				require.ErrorAs(t, err, &abandoned)
				close(g.open)
			}
			w.once("m2")
			require.Zero(t, w.effects("m1"), "a late nil commits nothing")
			require.Contains(t, w.letters("m1")[0].Error.StringVal, "time is over")
		})
	}
}

// Where a handler hangs that does not return is found in the goroutine profile, by its message.
func TestStackOfAHandlerThatHangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("the one that hangs")
	g := newGate()
	r := w.handle(w.queue, call(func(context.Context, *lease.Held) error {
		hangs(g)
		return nil
	}), func(c *processor.Config) { c.Name = "hanging"; c.HandlerTimeout = 100 * time.Millisecond })
	r.outcome(processor.Retried, 1)
	require.Contains(t, r.logs.String(), "spanqueue_message", "the log says where to look")
	var profile bytes.Buffer
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&profile, 1))
	found := false
	for _, stack := range strings.Split(profile.String(), "\n\n") {
		if strings.Contains(stack, "the one that hangs") {
			found = true
			require.Contains(t, stack, `"spanqueue_handler":"hanging"`)
			require.Contains(t, stack, `"spanqueue_queue":"Q"`)
			require.Contains(t, stack, "processor_test.hangs")
		}
	}
	require.True(t, found, profile.String())
	close(g.open)
	r.outcome(processor.Done, 1)
	require.NoError(t, r.stop())
	w.once("the one that hangs")
}

func hangs(g *gate) { <-g.open }

// After an unknown outcome of Settle only Settle runs again.
func TestOnlySettleRunsAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		action  fault.Action
		settles int64
	}{
		"it did not land": {fault.Before(codes.Internal, "broken"), 2},
		"it landed":       {fault.After(codes.Internal, "broken"), 1},
		"aborted":         {fault.Abort(), 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			h := w.fault(fault.Rule{Method: "Commit", Tag: "queue=Q", Nth: 1, Do: c.action})
			var calls, settles atomic.Int64
			r := w.handle(w.queue, processor.Call[int64]{
				Call: func(context.Context, *lease.Held) (int64, error) { return calls.Add(1), nil },
				Settle: func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message, result int64) error {
					settles.Add(1)
					if result != 1 {
						return errors.New("not the result of the call")
					}
					return addOne(ctx, tx, m)
				},
			})
			w.send("m1")
			w.applied(h)
			r.outcome(processor.Done, 1)
			require.NoError(t, r.stop())
			require.EqualValues(t, 1, calls.Load())
			require.Equal(t, c.settles, settles.Load())
			w.once("m1")
		})
	}
}

// A message that is deferred is out of reach for its time, and needs no renewals.
func TestDefer(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, callLease)
	w.send("m1")
	var calls atomic.Int64
	work := call(func(ctx context.Context, h *lease.Held) error {
		calls.Add(1)
		w.refuseRenewals()
		if err := h.Defer(ctx, patience); err != nil {
			return err
		}
		return sleep(ctx, 2*callLease)
	})
	a := w.handle(w.queue, work)
	b := w.handle(w.openQueue(w.db.Client(t)), work)
	wait(t, "the end", func() bool {
		return a.Figures().Deliveries[processor.Done]+b.Figures().Deliveries[processor.Done] == 1
	})
	require.NoError(t, a.stop())
	require.NoError(t, b.stop())
	require.EqualValues(t, 1, calls.Load())
	w.once("m1")
	require.Zero(t, w.records())
}

// The message is gone when the call defers it: nothing is done for it, and that is no failure.
func TestDeferOfWhatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, callLease)
	w.send("m1")
	r := w.handle(w.queue, call(func(ctx context.Context, h *lease.Held) error {
		_, err := w.client.Apply(ctx, []*spanner.Mutation{spanner.Ack("Q", spanner.Key{"m1"})})
		if err != nil {
			return err
		}
		return h.Defer(ctx, patience)
	}), maxAttempts(1))
	r.outcome(processor.LeaseLost, 1)
	require.NoError(t, r.stop())
	require.Zero(t, w.effects("m1"))
	require.Empty(t, w.letters("m1"))
	require.NotContains(t, r.logs.String(), "dead letters")
}

// A kind of message that takes less time than others may be deferred for less.
func TestDeferWithinTheTimeOfItsKind(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, callLease)
	w.send("m1")
	r := w.handle(w.queue, processor.Mux{
		Kind: func(*queue.Message) (string, error) { return "quick", nil },
		Routes: map[string]processor.Route{"quick": {
			Handler: call(func(ctx context.Context, h *lease.Held) error {
				if err := h.Defer(ctx, 15*time.Second); err == nil {
					return errors.New("it was deferred for less than its timeout")
				}
				return h.Defer(ctx, 25*time.Second)
			}),
			Policy: processor.Policy{HandlerTimeout: 20 * time.Second},
		}},
	}.Handler(), maxAttempts(1))
	r.outcome(processor.Done, 1)
	require.NoError(t, r.stop())
	w.once("m1")
}

// A checkpoint is what the next attempt starts from, and the start that came to nothing is on record.
func TestCheckpointAndAttempts(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, callLease)
	w.send("m1")
	var seen attemptsSeen
	payloads := make(chan string, 10)
	const longest = 3 * time.Second
	r := w.handle(w.queue, call(func(ctx context.Context, h *lease.Held) error {
		m := h.Message()
		payloads <- string(m.Payload)
		if seen.add(m) == 1 {
			if err := h.Checkpoint(ctx, []byte("half done"), longest); err != nil {
				return err
			}
			<-ctx.Done() // as a process that died
			return ctx.Err()
		}
		return nil
	}), func(c *processor.Config) { c.HandlerTimeout = longest })
	r.outcome(processor.Done, 1)
	require.NoError(t, r.stop())
	require.Equal(t, "payload of m1", <-payloads)
	require.Equal(t, "half done", <-payloads)
	w.once("m1")
}
