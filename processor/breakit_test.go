package processor_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// The tests of this file break a promise on purpose and show that the check that says "once" sees it. Each has a double of
// its own in place of the library's ack.

// streamReset makes Google's client run a transaction function again although its commit landed.
func streamReset() fault.Action {
	return fault.After(codes.Internal, "stream terminated by RST_STREAM with error code: INTERNAL_ERROR")
}

// An ack without an assertion: two holders both find their DELETE successful, and both commit.
func TestBreakAckWithoutAssertion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		ack     func(context.Context, *spanner.ReadWriteTransaction, *queue.Message) error
		effects int64
	}{
		{"asserted and guarded", func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
			q, err := queue.New(new(spanner.Client), testQueue)
			if err != nil {
				return err
			}
			return q.Ack(ctx, tx, m)
		}, 1},
		{"plain DELETE", func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
			_, err := tx.Update(ctx, spanner.Statement{SQL: "DELETE FROM Q WHERE Id = @id", Params: map[string]any{"id": m.Key[0]}})
			return err
		}, 2},
		{"Ack mutation that ignores a miss", func(_ context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
			return tx.BufferWrite([]*spanner.Mutation{spanner.Ack("Q", m.Key, spanner.WithIgnoreNotFound(true))})
		}, 2},
		{"Ack mutation", func(_ context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
			return tx.BufferWrite([]*spanner.Mutation{spanner.Ack("Q", m.Key)})
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.send("m1")
			// Both hold the same delivery: the first one's lease has run out.
			first, second := w.receive(), w.receive()
			require.Equal(t, first.DeliverTime, second.DeliverTime)
			for _, m := range []*queue.Message{first, second} {
				_, _ = w.client.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
					if err := c.ack(ctx, tx, m); err != nil {
						return err
					}
					return addOne(ctx, tx, m)
				})
			}
			require.Equal(t, c.effects, w.effects("m1"))
			require.Zero(t, w.left("m1"))
		})
	}
}

// receive takes the next message from a stream of its own, and lets its lease run out.
func (w *world) receive() *queue.Message {
	w.t.Helper()
	for m, err := range w.queue.Receive(w.t.Context(), queue.ReceiveOptions{MaxDuration: patience}) {
		require.NoError(w.t, err)
		return m
	}
	w.t.Fatal("nothing was received")
	return nil
}

// An ack without the guard, in a function that sends the key again: after a lost answer the second run takes the new
// message for the old one.
func TestBreakResendWithoutGuard(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		where   string
		effects int64
	}{
		{"guarded", "Id = @id AND DeliverTime = @seen", 1},
		{"by key alone", "Id = @id", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.send("m1")
			m := w.receive()
			later, err := w.queue.ServerTime(t.Context())
			require.NoError(t, err)
			h := w.fault(fault.Rule{Method: "Commit", Nth: 1, Do: streamReset()})
			var runs atomic.Int64
			_, _ = w.client.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
				runs.Add(1)
				params := map[string]any{"id": m.Key[0]}
				if c.effects == 1 {
					params["seen"] = m.DeliverTime
				}
				if _, err := tx.Update(ctx, spanner.Statement{SQL: "DELETE FROM Q WHERE " + c.where + " ASSERT_ROWS_MODIFIED 1", Params: params}); err != nil {
					return err
				}
				if err := addOne(ctx, tx, m); err != nil {
					return err
				}
				send, err := w.queue.SendMutation(queue.Outgoing{Key: m.Key, DeliverTime: later.Add(time.Hour)})
				if err != nil {
					return err
				}
				return tx.BufferWrite([]*spanner.Mutation{send})
			})
			require.Equal(t, 1, h.Applied())
			require.GreaterOrEqual(t, runs.Load(), int64(2))
			require.Equal(t, c.effects, w.effects("m1"))
			require.Equal(t, 1, w.left("m1"))
		})
	}
}
