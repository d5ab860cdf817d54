package idempotency_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/idempotency"
)

// An outside call that takes longer than the lease keeps it.
func TestLeaseIsRenewedDuringACall(t *testing.T) {
	t.Parallel()
	const lease = 4 * time.Second // long enough for a renewal on a loaded machine
	b := newBench(t, idempotency.Config{Lease: lease})
	renewals := b.count(t, fault.Rule{Method: "Commit", Tag: "spanqueue-step"})
	begun := time.Now()
	receipt, err := b.store.Steps(t.Context(), ride, payload("p"), func(ctx context.Context, run *idempotency.Run) error {
		_, err := idempotency.Outside[int]{Call: func(ctx context.Context, _ string) (int, error) {
			for n := 1; time.Since(begun) < lease+lease/10; n++ {
				require.NoError(t, renewals.WaitN(ctx, n))
				_, err := b.newStore(t, idempotency.Config{}).Steps(ctx, ride, payload("p"), func(context.Context, *idempotency.Run) error {
					t.Error("taken over from a living owner")
					return errCrash
				})
				require.ErrorIs(t, err, idempotency.ErrInProgress)
			}
			return 1, ctx.Err()
		}}.Step(ctx, run, "call")
		if err != nil {
			return err
		}
		return run.Complete(ctx, effect(idempotency.Result{}))
	})
	require.NoError(t, err)
	require.False(t, receipt.Replayed)
	require.GreaterOrEqual(t, renewals.Matched(), 3)
}

// The database refuses every renewal: the context ends before the lease does,
// with its cause, and no call begins after that.
func TestLeaseLostEndsTheContextAndStopsCalls(t *testing.T) {
	t.Parallel()
	const lease = 8 * time.Second // of which the last tenth is not used
	b := newBench(t, idempotency.Config{Lease: lease})
	b.fault(t, fault.Rule{Method: "Commit", Tag: "spanqueue-step", Do: fault.Before(codes.FailedPrecondition, "no")})
	_, err := b.store.Steps(t.Context(), ride, payload("p"), func(ctx context.Context, run *idempotency.Run) error {
		begun := time.Now() // the lease has begun before
		<-ctx.Done()
		require.Less(t, time.Since(begun), lease, "the context outlived the lease")
		require.ErrorIs(t, context.Cause(ctx), idempotency.ErrNotOwner)
		// Also with a context that the loss did not end.
		_, err := idempotency.Outside[int]{Call: func(context.Context, string) (int, error) {
			t.Error("called without a lease")
			return 1, nil
		}}.Step(t.Context(), run, "call")
		require.ErrorIs(t, err, idempotency.ErrNotOwner)
		return err
	})
	require.ErrorIs(t, err, idempotency.ErrNotOwner)
}

// A function that ignores the end of its context loses the operation to the
// next call, within a lease, and cannot end it any more.
func TestLeaseOfAHandlerThatIgnoresItsContext(t *testing.T) {
	t.Parallel()
	var log syncBuffer
	cfg := idempotency.Config{Lease: 2 * time.Second, HandlerTimeout: 50 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	b := newBench(t, cfg)
	next := b.newStore(t, idempotency.Config{})
	_, err := b.store.Steps(t.Context(), ride, payload("p"), func(ctx context.Context, run *idempotency.Run) error {
		require.Eventually(t, func() bool {
			_, err := next.Steps(t.Context(), ride, payload("p"), func(ctx context.Context, run *idempotency.Run) error {
				return run.Complete(ctx, effect(idempotency.Result{Code: 2}))
			})
			return err == nil
		}, time.Minute, 10*time.Millisecond)
		require.ErrorContains(t, context.Cause(ctx), "HandlerTimeout")
		require.Eventually(t, func() bool { return log.contains("ignores the end of its context") }, time.Minute, 10*time.Millisecond)
		return run.Complete(context.WithoutCancel(ctx), effect(idempotency.Result{Code: 1}))
	})
	require.ErrorIs(t, err, idempotency.ErrNotOwner)
	receipt, err := b.store.Lookup(t.Context(), ride)
	require.NoError(t, err)
	require.EqualValues(t, 2, receipt.Code)
	require.EqualValues(t, 1, b.points(t))
	require.False(t, log.contains(ride.Key), "a key was logged")
}

// A caller with less patience than the work: the next call goes on at once.
func TestCallerGoneReleasesAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := b.store.Steps(ctx, ride, payload("p"), func(ctx context.Context, run *idempotency.Run) error {
		cancel()
		return run.Complete(ctx, effect(idempotency.Result{}))
	})
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, errors.Is(err, idempotency.ErrUnresolved))
	receipt, err := b.store.Steps(t.Context(), ride, payload("p"), func(ctx context.Context, run *idempotency.Run) error {
		return run.Complete(ctx, effect(idempotency.Result{}))
	})
	require.NoError(t, err)
	require.False(t, receipt.Replayed)
	require.EqualValues(t, 1, b.points(t))
}
