package processor_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
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
