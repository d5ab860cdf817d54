package processor_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
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

// F20: a permanent error of the handler's first statement comes back as it is, and the handler does not run twice for it.
func TestF20PermanentErrorOfTheFirstStatement(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, sql string
		code      codes.Code
	}{
		{"existing key", "INSERT INTO Effects (Id, N) VALUES ('taken', 1)", codes.AlreadyExists},
		{"invalid SQL", "INSERT INTO Nowhere (Id) VALUES ('x')", codes.InvalidArgument},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			_, err := w.client.Apply(t.Context(), []*spanner.Mutation{spanner.Insert("Effects", []string{"Id", "N"}, []any{"taken", 7})})
			require.NoError(t, err)
			var calls atomic.Int64
			var seen atomic.Value
			r := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
				calls.Add(1)
				if err := addOne(ctx, tx, m); err != nil {
					return err
				}
				_, err := tx.Update(ctx, spanner.NewStatement(c.sql))
				seen.Store(err)
				return fmt.Errorf("handle %v: %w", m.Key, err)
			}, func(c *processor.Config) { c.Backoff.Min, c.Backoff.Max = time.Hour, time.Hour })
			w.send("m1")
			r.outcome(processor.Retried, 1)
			require.NoError(t, r.stop())
			require.EqualValues(t, 1, calls.Load(), "the ack is the first statement, so the handler's never begins the transaction")
			require.Equal(t, c.code, spanner.ErrCode(seen.Load().(error)), "%v", seen.Load())
			require.Contains(t, r.logs.String(), c.code.String(), "the server's own words reach the log")
			require.Zero(t, w.effects("m1"))
			require.Equal(t, 1, w.left("m1"))
		})
	}
}

// F19: an abort that the handler hides, and one that it makes up.
func TestF19Aborts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		wraps func(error) error
	}{
		{"wrapped", func(err error) error { return fmt.Errorf("read: %w", err) }},
		{"flattened to text", func(err error) error { return errors.New(err.Error()) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.fault(fault.Rule{Method: "StreamingRead", Tag: "queue=Q", Nth: 1, Do: fault.Abort()})
			var calls atomic.Int64
			r := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
				calls.Add(1)
				if err := addOne(ctx, tx, m); err != nil {
					return c.wraps(err)
				}
				return nil
			})
			w.send("m1")
			r.outcome(processor.Done, 1)
			require.NoError(t, r.stop())
			w.once("m1")
			require.EqualValues(t, 2, calls.Load())
			require.EqualValues(t, 1, r.Figures().Aborts)
			require.Len(t, r.Figures().Deliveries, 1)
		})
	}
	t.Run("made up", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		var calls atomic.Int64
		r := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
			calls.Add(1)
			_ = addOne(ctx, tx, m)
			return status.Error(codes.Aborted, "I say so")
		}, func(c *processor.Config) { c.Backoff.Min, c.Backoff.Max = time.Hour, time.Hour })
		w.send("m1")
		r.outcome(processor.Retried, 1)
		require.NoError(t, r.stop())
		require.EqualValues(t, 1, calls.Load())
		require.Zero(t, w.effects("m1"))
	})
}

// F31 (b, c): a handler's deadline, a panic and a Goexit leave no transaction open.
func TestF31NothingStaysOpen(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]processor.TxFunc{
		"deadline": func(ctx context.Context, _ *spanner.ReadWriteTransaction, _ *queue.Message) error {
			<-ctx.Done()
			return ctx.Err()
		},
		"panic": func(context.Context, *spanner.ReadWriteTransaction, *queue.Message) error { panic("no") },
		"goexit": func(context.Context, *spanner.ReadWriteTransaction, *queue.Message) error {
			runtime.Goexit()
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
				if m.Key[0] == "m2" {
					return addOne(ctx, tx, m)
				}
				if err := addOne(ctx, tx, m); err != nil {
					return err
				}
				return f(ctx, tx, m)
			}, func(c *processor.Config) {
				if name == "deadline" {
					c.HandlerTimeout = time.Second // which is enough for m2
				}
				c.Backoff.Min, c.Backoff.Max = time.Hour, time.Hour
			})
			rollbacks := w.fault(fault.Rule{Method: "Rollback", Tag: "queue=Q", Do: fault.Delay(0)})
			w.send("m1")
			w.applied(rollbacks)
			r.outcome(processor.Retried, 1)
			w.send("m2")
			r.outcome(processor.Done, 1)
			require.NoError(t, r.stop())
			w.once("m2")
			require.Zero(t, w.effects("m1"))
			require.Equal(t, 1, w.left("m1"))
			if name != "deadline" {
				require.Contains(t, r.logs.String(), "handler")
			}
		})
	}
}

// F39: the handler steps outside its transaction.
func TestF39OutsideTheTransaction(t *testing.T) {
	t.Parallel()
	t.Run("a transaction of its own is refused", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		var refusal atomic.Value
		r := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
			_, err := w.client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
				return effect(ctx, tx, "inner")
			})
			if err == nil {
				err = errors.New("it was not refused")
			}
			refusal.Store(err)
			return addOne(ctx, tx, m)
		})
		w.send("m1")
		r.outcome(processor.Done, 1)
		require.NoError(t, r.stop())
		require.Equal(t, codes.FailedPrecondition, spanner.ErrCode(refusal.Load().(error)), "%v", refusal.Load())
		require.Zero(t, w.effects("inner"))
		w.once("m1")
	})
	t.Run("the handle is dead after the return", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		var mu sync.Mutex
		var kept *spanner.ReadWriteTransaction
		r := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
			mu.Lock()
			kept = tx
			mu.Unlock()
			return addOne(ctx, tx, m)
		})
		w.send("m1")
		r.outcome(processor.Done, 1)
		mu.Lock()
		defer mu.Unlock()
		require.Error(t, kept.BufferWrite([]*spanner.Mutation{spanner.Insert("Effects", []string{"Id", "N"}, []any{"late", 1})}))
		_, err := kept.Update(t.Context(), spanner.NewStatement("INSERT INTO Effects (Id, N) VALUES ('late', 1)"))
		require.Error(t, err)
		mutation, err := w.queue.SendMutation(queue.Outgoing{Key: spanner.Key{"m2"}})
		require.NoError(t, err)
		require.Error(t, kept.BufferWrite([]*spanner.Mutation{mutation}))
		require.NoError(t, r.stop())
		require.Zero(t, w.effects("late"))
		require.Zero(t, w.left("m2"))
		w.once("m1")
	})
}
