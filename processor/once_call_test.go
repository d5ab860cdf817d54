package processor_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/lease"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
)

// Two messages ask for one operation, whose first try fails behind a call of the outside. The call is
// made once, each step takes effect once, and each message gets the same receipt in the commit that acknowledges it.
func TestTwoMessagesForStepsInsideACall(t *testing.T) {
	t.Parallel()
	w, store := onceWorld(t)
	var calls, tries atomic.Int64
	h := processor.Call[idempotency.Receipt]{
		Call: func(ctx context.Context, h *lease.Held) (idempotency.Receipt, error) {
			op, asked, err := operationOf(h.Message())
			if err != nil {
				return idempotency.Receipt{}, processor.DeadLetter(err)
			}
			receipt, err := store.Steps(ctx, op, asked, func(ctx context.Context, run *idempotency.Run) error {
				_, err := idempotency.Local(ctx, run, "ride", func(ctx context.Context, tx *spanner.ReadWriteTransaction) (int, error) {
					return 0, effect(ctx, tx, "ride")
				})
				if err != nil {
					return err
				}
				charge, err := idempotency.Outside[string]{Call: func(context.Context, string) (string, error) {
					return fmt.Sprint("charge ", calls.Add(1)), nil
				}}.Step(ctx, run, "charge")
				if err != nil {
					return err
				}
				if tries.Add(1) == 1 {
					return errors.New("broken behind the charge")
				}
				return run.Complete(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
					return idempotency.Result{Body: []byte(charge)}, effect(ctx, tx, "end")
				})
			})
			return receipt, processor.OperationFate(err)
		},
		Settle: func(ctx context.Context, tx *spanner.ReadWriteTransaction, _ *queue.Message, receipt idempotency.Receipt) error {
			return effect(ctx, tx, string(receipt.Body))
		},
	}
	r := w.handle(w.queue, h)
	w.sendPayload("k five", "m1", "m2")
	r.outcome(processor.Done, 2)
	w.sendPayload("k six", "m3")
	r.outcome(processor.DeadLettered, 1)
	require.NoError(t, r.stop())
	require.EqualValues(t, 1, calls.Load())
	require.EqualValues(t, 1, w.effects("ride"))
	require.EqualValues(t, 1, w.effects("end"))
	require.EqualValues(t, 2, w.effects("charge 1"), "one for each message")
	require.Contains(t, w.letters("m3")[0].Error.StringVal, "another request")
}

func TestOperationFate(t *testing.T) {
	t.Parallel()
	w, store := onceWorld(t)
	require.NoError(t, processor.OperationFate(nil))
	own := errors.New("own")
	require.Equal(t, own, processor.OperationFate(own))
	for _, err := range []error{idempotency.ErrMismatch, idempotency.ErrExpired, idempotency.ErrTooLarge} {
		require.Equal(t, processor.DeadLetter(err), processor.OperationFate(err))
	}
	require.Equal(t, processor.Snooze(time.Second), processor.OperationFate(idempotency.ErrNotOwner))
	require.Equal(t, processor.Snooze(time.Minute), processor.OperationFate(fmt.Errorf("wrapped: %w", idempotency.ErrUncertain)))

	// In progress: for as long as the present owner's lease has left.
	op, asked, err := operationOf(&queue.Message{Payload: []byte("k five")})
	require.NoError(t, err)
	_, err = store.Steps(w.t.Context(), op, asked, func(ctx context.Context, _ *idempotency.Run) error {
		_, err := store.Lookup(ctx, op)
		require.ErrorIs(t, err, idempotency.ErrInProgress)
		left, _ := idempotency.RetryAfter(err)
		require.Equal(t, processor.Snooze(left), processor.OperationFate(err))
		return own
	})
	require.ErrorIs(t, err, own)
}
