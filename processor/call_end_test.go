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

	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/lease"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/stretchr/testify/require"
)

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

// A handler that has outrun its time keeps its message no longer: there are no more renewals, though it is still running.
func TestRenewalsEndAtTheHandlersTimeout(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, leaseLength*3/2)
	w.send("m1")
	g := newGate()
	r := w.handle(w.queue, call(func(context.Context, *lease.Held) error {
		<-g.open
		return nil
	}), maxAttempts(1), func(c *processor.Config) { c.HandlerTimeout = 100 * time.Millisecond })
	r.outcome(processor.DeadLettered, 1)
	require.EqualValues(t, 1, r.Figures().Receiver.Renewed, "the one that it started after")
	close(g.open)
	require.NoError(t, r.stop())
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
