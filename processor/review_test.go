package processor_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// brokenError is an error that cannot be asked: a nil pointer in an error variable.
type brokenError struct{ cause error }

func (e *brokenError) Error() string { return "broken: " + e.cause.Error() }
func (e *brokenError) Unwrap() error { return e.cause }

func broken() error { return (*brokenError)(nil) }

// A user's function that panics, ends its goroutine, or returns an error that panics costs the delivery, never a worker.
func TestUsersFunctionsCostNoWorker(t *testing.T) {
	t.Parallel()
	fails := map[string]func() error{
		"panic":        func() error { panic("out of order") },
		"goexit":       func() error { runtime.Goexit(); return nil },
		"broken error": broken,
	}
	handlers := map[string]func(store *idempotency.Store, fail func() error) processor.Handler{
		"handler": func(_ *idempotency.Store, fail func() error) processor.Handler {
			return processor.Tx(func(context.Context, *spanner.ReadWriteTransaction, *queue.Message) error { return fail() })
		},
		"kind": func(_ *idempotency.Store, fail func() error) processor.Handler {
			return processor.Mux{
				Kind:   func(*queue.Message) (string, error) { return "", fail() },
				Routes: map[string]processor.Route{"a": {Handler: processor.Tx(addOne)}},
			}.Handler()
		},
		"decode": func(_ *idempotency.Store, fail func() error) processor.Handler {
			return processor.Typed(func([]byte) (int, error) { return 0, fail() },
				func(context.Context, *spanner.ReadWriteTransaction, *queue.Message, int) error { return nil })
		},
		"operation": func(store *idempotency.Store, fail func() error) processor.Handler {
			return processor.Once{
				Store: store,
				Operation: func(*queue.Message) (idempotency.Operation, idempotency.Fingerprint, error) {
					return idempotency.Operation{}, idempotency.Fingerprint{}, fail()
				},
				Effect: grant,
			}
		},
	}
	for where, handler := range handlers {
		for how, fail := range fails {
			t.Run(where+" "+how, func(t *testing.T) {
				t.Parallel()
				w, store := onceWorld(t)
				w.send("m1", "m2", "m3")
				r := w.handle(w.queue, handler(store, fail), func(c *processor.Config) { c.Concurrency, c.MaxAttempts = 1, 1 })
				r.outcome(processor.DeadLettered, 3)
				require.NoError(t, r.stop())
			})
		}
	}
}

// An error's text need not be UTF-8, and a column's must be.
func TestDeadLetterWithAnyErrorText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("m1")
	r := w.work(func(context.Context, *spanner.ReadWriteTransaction, *queue.Message) error {
		return processor.DeadLetter(errors.New("cannot read \xff\xfe"))
	}, func(c *processor.Config) { c.ResolveTimeout = time.Second })
	r.outcome(processor.DeadLettered, 1)
	require.NoError(t, r.stop())
	require.Zero(t, w.left("m1"))
}

// One Mux for two processors.
func TestMuxServesTwoProcessors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	h := processor.Mux{
		Kind: func(*queue.Message) (string, error) { return "a", nil },
		Routes: map[string]processor.Route{"a": {Concurrency: 1, Handler: processor.Tx(
			func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
				if m.Key[0] == "m1" {
					close(entered)
					<-leave
				}
				return addOne(ctx, tx, m)
			})}},
	}.Handler()
	w.send("m1")
	r := w.handle(w.queue, h)
	<-entered
	_, err := processor.New(w.openQueue(w.client), h, processor.Config{})
	require.NoError(t, err)
	close(leave)
	r.outcome(processor.Done, 1)
	require.NoError(t, r.stop())
	w.once("m1")
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
	require.Less(t, time.Since(begun), 5*time.Second)
	require.NoError(t, r.stop())
}

// A run of Effect that was given up goes on beside the run that commits.
func TestOnceGivenUpRunGoesOn(t *testing.T) {
	t.Parallel()
	w, store := onceWorld(t)
	w.sendPayload("k five", "m1")
	aborted := w.fault(fault.Rule{Method: "StreamingRead", Match: func(c fault.Call) bool {
		read, ok := c.Request.(*spannerpb.ReadRequest)
		return ok && read.GetTable() == "Effects"
	}, Nth: 1, Do: fault.Abort()})
	late, ended := make(chan struct{}), make(chan struct{})
	h := processor.Once{Store: store, Operation: operationOf, Effect: func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) (idempotency.Result, error) {
		r, err := grant(ctx, tx, m)
		if spanner.ErrCode(err) == codes.Aborted {
			<-late
			defer close(ended)
		} else {
			close(late)
		}
		return r, err
	}}
	r := w.handle(w.queue, h, func(c *processor.Config) { c.HandlerTimeout = 100 * time.Millisecond })
	w.applied(aborted)
	<-ended
	r.outcome(processor.Done, 1)
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

// Starts that are to be taken back in a database that does not answer hold a worker up once, not once a message.
func TestTakingBackIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 8
	var out []queue.Outgoing
	due := time.Now().Truncate(time.Microsecond).Add(time.Nanosecond) // as if it had been sent again: its start is counted
	for i := range n {
		out = append(out, queue.Outgoing{Key: spanner.Key{fmt.Sprint("m", i)}, DeliverTime: due.Add(100 * time.Millisecond)})
	}
	require.NoError(t, w.queue.Send(t.Context(), out))
	w.fault(fault.Rule{Method: "Commit", Tag: "handler=Q", Do: fault.Abort()})
	takeBack := w.fault(fault.Rule{Method: "Commit", Tag: "attempts=Q", Nth: 2, Times: 1000, Do: fault.Drop()})
	r := w.handle(w.queue, processor.Batch(func(context.Context, *spanner.ReadWriteTransaction, []*queue.Message) error { return nil }),
		func(c *processor.Config) { c.Concurrency, c.Linger, c.MaxRuns = 1, 500*time.Millisecond, 1 })
	w.applied(takeBack)
	begun := time.Now()
	wait(t, "the outcomes", func() bool { return r.Figures().Deliveries[processor.Interrupted] >= n })
	require.Less(t, time.Since(begun), n*leaseLength/2)
}
