package processor_test

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
)

func TestShutdown(t *testing.T) {
	t.Parallel()
	t.Run("before Run", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		p, err := processor.New(w.queue, processor.Tx(addOne), processor.Config{})
		require.NoError(t, err)
		require.NoError(t, p.Shutdown(t.Context()))
		require.NoError(t, p.Shutdown(t.Context()), "twice")
		require.ErrorIs(t, p.Run(t.Context()), processor.ErrStopped)
	})
	t.Run("while running, from two goroutines", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		r := w.work(addOne)
		w.send("m1")
		r.outcome(processor.Done, 1)
		errs := make(chan error, 2)
		for range 2 {
			go func() { errs <- r.Shutdown(t.Context()) }()
		}
		require.NoError(t, <-errs)
		require.NoError(t, <-errs)
		require.ErrorIs(t, r.Run(t.Context()), processor.ErrRunning)
		w.send("m2")
		require.NoError(t, r.stop())
		require.Equal(t, 1, w.left("m2"), "nothing is taken after a stop")
	})
	t.Run("its context ends the draining", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		g := newGate()
		r := w.work(func(ctx context.Context, _ *spanner.ReadWriteTransaction, _ *queue.Message) error {
			g.entered <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		})
		w.send("m1")
		g.wait(t)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, r.Shutdown(ctx), context.DeadlineExceeded)
		require.NoError(t, r.stop())
		r.outcome(processor.Interrupted, 1)
	})
}

// Shutdown is obeyed while Run still looks whether its tables are there.
func TestShutdownWhileTheTablesAreLookedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.fault(fault.Rule{Method: "StreamingRead", Do: fault.Drop()})
	r := w.work(addOne)
	w.applied(h)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	begun := time.Now()
	_ = r.Shutdown(ctx) // Run may come first
	require.Less(t, time.Since(begun), 15*time.Second, "and not for as long as the database is waited for")
	require.NoError(t, r.stop())
}

// When Run returns, what it gave up has its outcome.
func TestRunWaitsForWhatItGaveUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lost := w.fault(fault.Rule{Method: "Commit", Tag: "handler=lost", Do: fault.Drop()})
	asked := w.fault(fault.Rule{Method: "StreamingRead", Match: func(c fault.Call) bool {
		read, ok := c.Request.(*spannerpb.ReadRequest)
		return ok && read.GetTable() == "Q"
	}, Do: fault.Drop()})
	r := w.work(addOne, func(c *processor.Config) { c.Name, c.DrainTimeout = "lost", 10*time.Millisecond })
	w.send("m1")
	w.applied(lost)
	w.applied(asked)
	require.NoError(t, r.stop())
	require.EqualValues(t, 1, r.Figures().Deliveries[processor.Unresolved], "%v", r.Figures().Deliveries)
}
