package processor_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/lease"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
)

// An operation in steps works inside a Call: when the handler fails between two steps, the next attempt goes on after the
// outside call whose result is stored, and makes no second one. Settle acknowledges.
func TestStepsInsideACall(t *testing.T) {
	t.Parallel()
	w, store := onceWorld(t)
	var outside, local atomic.Int64
	handler := processor.Call[idempotency.Receipt]{
		Call: func(ctx context.Context, h *lease.Held) (idempotency.Receipt, error) {
			m := h.Message()
			op := idempotency.Operation{Scope: "tests", Name: "ride", Key: m.Key[0].(string)}
			return store.Steps(ctx, op, idempotency.FingerprintBytes(m.Payload), func(ctx context.Context, run *idempotency.Run) error {
				charge := idempotency.Outside[string]{Call: func(_ context.Context, key string) (string, error) {
					outside.Add(1)
					return "charged under " + key, nil
				}}
				charged, err := charge.Step(ctx, run, "charge")
				if err != nil {
					return err
				}
				if m.Attempt == 1 {
					return errors.New("the process has a bad moment")
				}
				if _, err := idempotency.Local(ctx, run, "book", func(ctx context.Context, tx *spanner.ReadWriteTransaction) (int, error) {
					local.Add(1)
					return 1, effect(ctx, tx, "booked "+m.Key[0].(string))
				}); err != nil {
					return err
				}
				return run.Complete(ctx, func(context.Context, *spanner.ReadWriteTransaction) (idempotency.Result, error) {
					return idempotency.Result{Body: []byte(charged)}, nil
				})
			})
		},
		Settle: func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message, receipt idempotency.Receipt) error {
			if len(receipt.Body) == 0 {
				return errors.New("no receipt")
			}
			return addOne(ctx, tx, m)
		},
	}
	r := w.handle(w.queue, handler)
	w.send("m1")
	r.outcome(processor.Done, 1)
	require.NoError(t, r.stop())
	w.once("m1")
	require.EqualValues(t, 1, r.Figures().Deliveries[processor.Retried])
	require.EqualValues(t, 1, outside.Load(), "the stored result is used")
	require.EqualValues(t, 1, local.Load())
	require.EqualValues(t, 1, w.effects("booked m1"))
}
