package queuesql_test

import (
	"context"
	"database/sql"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuesql"
	"github.com/spanqueue/spanqueue/queue/queuetest"
	"github.com/stretchr/testify/require"
)

func TestRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	memory := queuetest.New(testQueue, queuetest.Options{}).Queue()
	for name, c := range map[string]struct {
		queue   *queue.Queue
		handler processor.Handler
		want    string
	}{
		"no function":     {w.queue, queuesql.Handler(w.db, nil), "function is nil"},
		"no database":     {w.queue, queuesql.Handler(nil, addOne), "*sql.DB is nil"},
		"queue in memory": {memory, queuesql.Handler(w.db, addOne), "cannot be acknowledged by SQL"},
		"in a Mux": {memory, processor.Mux{
			Kind:   processor.KeyColumn("Id"),
			Routes: map[string]processor.Route{"x": {Handler: queuesql.Handler(w.db, addOne)}},
		}.Handler(), `Mux.Routes["x"]`},
	} {
		_, err := processor.New(c.queue, c.handler, processor.Config{})
		require.ErrorIs(t, err, processor.ErrInvalid, name)
		require.ErrorContains(t, err, c.want, name)
	}
}

// A handler that ends its transaction by itself.
func TestHandlerEndsTheTransaction(t *testing.T) {
	t.Parallel()
	t.Run("commit", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		r := w.work(func(ctx context.Context, tx *sql.Tx, m *queue.Message) error {
			if err := addOne(ctx, tx, m); err != nil {
				return err
			}
			return tx.Commit()
		})
		w.send("m1")
		r.outcome(processor.Duplicate, 1)
		r.stop()
		w.once("m1")
		require.Contains(t, r.logs.String(), queuesql.ErrEnded.Error())
	})
	t.Run("rollback", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		r := w.work(func(ctx context.Context, tx *sql.Tx, m *queue.Message) error {
			if err := addOne(ctx, tx, m); err != nil {
				return err
			}
			return tx.Rollback()
		}, func(c *processor.Config) { c.MaxAttempts = 1 })
		w.send("m1")
		r.outcome(processor.DeadLettered, 1)
		r.stop()
		require.Zero(t, w.effects("m1"))
		require.Contains(t, r.logs.String(), queuesql.ErrEnded.Error())
	})
}

// The handle is dead once the function has returned.
func TestHandleIsDeadAfterTheReturn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var kept atomic.Pointer[sql.Tx]
	r := w.work(func(ctx context.Context, tx *sql.Tx, m *queue.Message) error {
		kept.Store(tx)
		return addOne(ctx, tx, m)
	})
	w.send("m1")
	r.outcome(processor.Done, 1)
	require.ErrorIs(t, effect(t.Context(), kept.Load(), "late"), sql.ErrTxDone)
	r.stop()
	require.Zero(t, w.effects("late"))
}

// A handler that ignores its context is given up, and what it wrote does not stay.
func TestHandlerTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.work(func(ctx context.Context, tx *sql.Tx, m *queue.Message) error {
		if err := addOne(ctx, tx, m); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	}, func(c *processor.Config) {
		c.HandlerTimeout = 100 * time.Millisecond
		c.Backoff.Min, c.Backoff.Max = time.Hour, time.Hour
	})
	w.send("m1")
	r.outcome(processor.Retried, 1)
	r.stop()
	require.Zero(t, w.effects("m1"))
	require.EqualValues(t, 1, w.left("m1"))
}

// The transaction has the processor's tag in every run: operators and faults find it by that.
func TestTag(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fault(fault.Rule{Method: "Commit", Tag: "handler=H", Nth: 1, Do: fault.Abort()})
	second := w.fault(fault.Rule{Method: "Commit", Tag: "handler=H", Nth: 1, Do: fault.Delay(time.Millisecond)})
	r := w.work(addOne, func(c *processor.Config) { c.Name = "H" })
	w.send("m1")
	r.outcome(processor.Done, 1)
	w.applied(second)
	r.stop()
	w.once("m1")
}

// What a handler sends is sent when its message is acknowledged.
func TestHandlerSends(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.work(func(ctx context.Context, tx *sql.Tx, m *queue.Message) error {
		if m.Key[0] == "m1" {
			if err := queuesql.Send(ctx, tx, w.queue, queue.Outgoing{Key: spanner.Key{"m2"}}); err != nil {
				return err
			}
		}
		return addOne(ctx, tx, m)
	})
	w.send("m1")
	r.outcome(processor.Done, 2)
	r.stop()
	w.once("m1", "m2")
}
