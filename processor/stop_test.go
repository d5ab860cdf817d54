package processor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// gate lets a test wait for a handler and then let it go.
type gate struct{ entered, open chan struct{} }

func newGate() *gate { return &gate{make(chan struct{}, 100), make(chan struct{})} }

func (g *gate) pass() {
	g.entered <- struct{}{}
	<-g.open
}

func (g *gate) wait(t *testing.T) {
	t.Helper()
	select {
	case <-g.entered:
	case <-time.After(patience):
		t.Fatal("the handler was not started")
	}
}

// F12: received but not yet started at the stop.
func TestF12ReceivedButNotStarted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := newGate()
	var calls atomic.Int64
	r := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		calls.Add(1)
		g.pass()
		return addOne(ctx, tx, m)
	}, func(c *processor.Config) { c.Concurrency = 1; c.Receiver.LowWater = 4 })
	w.send("m1", "m2", "m3", "m4")
	g.wait(t)
	wait(t, "the others to be received", func() bool { return r.Figures().Receiver.Waiting == 3 })
	r.cancel()
	close(g.open)
	require.NoError(t, r.stop())
	require.EqualValues(t, 1, calls.Load(), "nothing is started after the stop")
	require.EqualValues(t, 1, r.Figures().Deliveries[processor.Done])

	// They are available elsewhere within a lease.
	next := w.work(addOne)
	begun := time.Now()
	next.outcome(processor.Done, 3)
	require.Less(t, time.Since(begun), 15*leaseLength)
	require.NoError(t, next.stop())
	w.once("m1", "m2", "m3", "m4")
}

// F13: the stop does not kill the ack of finished work.
func TestF13StopDoesNotKillFinishedWork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fault fault.Rule
	}{
		{"while the handler runs", fault.Rule{Method: "StreamingRead", Tag: "queue=Q", Nth: 1, Do: fault.Hold()}},
		{"just as it has returned", fault.Rule{Method: "Commit", Tag: "queue=Q", Nth: 1, Do: fault.Hold()}},
		{"while the answer is on its way", fault.Rule{Method: "Commit", Tag: "queue=Q", Nth: 1, Do: fault.HoldReply()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			held := w.fault(c.fault)
			r := w.work(addOne, func(c *processor.Config) { c.CommitTimeout = 10 * time.Second })
			w.send("m1")
			w.applied(held)
			r.cancel()
			wait(t, "the stop to be seen", func() bool { return r.Figures().Receiver.Waiting == 0 })
			held.Release()
			require.NoError(t, r.stop())
			require.EqualValues(t, 1, r.Figures().Deliveries[processor.Done])
			w.once("m1")
			require.Empty(t, r.logs.String(), "nothing to complain of")
		})
	}
}

// F15: our own stop is not a failure of the handler.
func TestF15StopIsNotAFailure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		err     func(context.Context) error
		outcome processor.Outcome
	}{
		{"wrapped context error", func(ctx context.Context) error { return fmt.Errorf("query: %w", ctx.Err()) }, processor.Interrupted},
		{"bare Spanner status", func(context.Context) error { return status.Error(codes.Canceled, "context canceled") }, processor.Interrupted},
		{"the context's cause", context.Cause, processor.Interrupted},
		// An error that has nothing to do with the stop is the handler's, whenever it comes.
		{"unrelated error", func(context.Context) error { return errors.New("disk full") }, processor.DeadLettered},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g := newGate()
			var cause error
			r := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
				if err := addOne(ctx, tx, m); err != nil {
					return err
				}
				g.entered <- struct{}{}
				<-ctx.Done()
				cause = context.Cause(ctx)
				return c.err(ctx)
			}, maxAttempts(1), func(c *processor.Config) { c.DrainTimeout = 100 * time.Millisecond })
			w.send("m1")
			g.wait(t)
			require.NoError(t, r.stop())
			require.ErrorIs(t, cause, processor.ErrDrainTimeout)
			r.outcome(c.outcome, 1)
			require.Zero(t, w.effects("m1"))
			if c.outcome != processor.Interrupted {
				require.Len(t, w.letters("m1"), 1)
				require.Zero(t, w.left("m1"), "never both put back and dead-lettered")
				return
			}
			require.Equal(t, 1, w.left("m1"))
			require.Empty(t, w.letters("m1"))
			var seen attemptsSeen
			next := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
				seen.add(m)
				return addOne(ctx, tx, m)
			}, maxAttempts(1))
			next.outcome(processor.Done, 1)
			require.NoError(t, next.stop())
			require.Equal(t, []int{1}, seen.list(), "no attempt was used")
			w.once("m1")
		})
	}
}

// A handler that ignores its context does not keep Run from returning, and is named.
func TestRunAbandonsAHandlerThatIgnoresItsContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := newGate()
	r := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		g.pass()
		return addOne(ctx, tx, m)
	}, func(c *processor.Config) { c.DrainTimeout = 50 * time.Millisecond })
	w.send("m1")
	g.wait(t)
	begun := time.Now()
	err := r.stop()
	require.Less(t, time.Since(begun), 10*time.Second)
	var abandoned *processor.AbandonedError
	require.ErrorAs(t, err, &abandoned)
	require.Len(t, abandoned.Deliveries, 1)
	require.Contains(t, abandoned.Deliveries[0].Message, "m1")
	close(g.open) // its late work is refused: the transaction was rolled back
	wait(t, "another worker", func() bool { return w.left("m1") == 1 })
	next := w.work(addOne)
	next.outcome(processor.Done, 1)
	require.NoError(t, next.stop())
	w.once("m1")
}

func TestMissingTablesAreNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := testQueue
	other.Name = "NoTables"
	q, err := queue.New(w.client, other)
	require.NoError(t, err)
	var logs strings.Builder // read after Run has ended, and with it what writes
	p, err := processor.New(q, processor.Tx(addOne), processor.Config{Logger: slog.New(slog.NewTextHandler(&logs, nil))})
	require.NoError(t, err)
	err = p.Run(t.Context())
	require.Contains(t, logs.String(), "spanqueue: nothing is handled")
	require.ErrorContains(t, err, "NoTablesAttempts is missing")
	require.ErrorContains(t, err, "schema.Attempts")
	require.ErrorContains(t, err, "NoTablesDeadLetters is missing", "both at once")
}
