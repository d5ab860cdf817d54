package processor_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/lease"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
)

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

// A stop that ends the work of a deferred message gives the message to others at once, unless the handler may go on with it.
func TestStopOfADeferredCall(t *testing.T) {
	t.Parallel()
	for name, listens := range map[string]bool{"it returns": true, "it does not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorldOf(t, callLease)
			w.send("m1")
			g := newGate()
			var seen attemptsSeen
			r := w.handle(w.queue, call(func(ctx context.Context, h *lease.Held) error {
				seen.add(h.Message())
				if err := h.Checkpoint(ctx, []byte("half done"), time.Hour); err != nil {
					return err
				}
				g.entered <- struct{}{}
				<-ctx.Done()
				if !listens {
					<-g.open
				}
				return ctx.Err()
			}), func(c *processor.Config) { c.DrainTimeout = 10 * time.Millisecond })
			g.wait(t)
			require.EqualValues(t, 1, w.records(), "the start goes on, and is on record")
			err := r.stop()
			if !listens {
				require.Error(t, err)
				close(g.open)
				there, err := w.queue.Peek(t.Context(), 1)
				require.NoError(t, err)
				require.Len(t, there, 1)
				require.Greater(t, time.Until(there[0].DeliverTime), time.Minute, "its handler may go on until the message's time")
				return
			}
			require.NoError(t, err)
			require.Equal(t, map[processor.Outcome]int64{processor.Interrupted: 1}, r.Figures().Deliveries)
			other := w.handle(w.queue, call(func(_ context.Context, h *lease.Held) error {
				seen.add(h.Message())
				if string(h.Message().Payload) != "half done" {
					return errors.New("the checkpoint is lost")
				}
				return nil
			}), maxAttempts(1))
			other.outcome(processor.Done, 1)
			require.NoError(t, other.stop())
			w.once("m1")
			require.Equal(t, []int{1, 1}, seen.all, "an interruption is no attempt")
			require.Zero(t, w.records())
		})
	}
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
