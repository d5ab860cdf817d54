package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/idempotency"
)

// The windows in which it is not clear whether an operation has been done, each
// as one test. The other files go through the same windows in more variants.

func TestWindowSameKeyAtOnceOneEffect(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{})
	receipts := make([]idempotency.Receipt, 20)
	var wg sync.WaitGroup
	for i := range receipts {
		wg.Go(func() {
			var err error
			receipts[i], err = b.store.Do(t.Context(), op, payload("p"), effect(idempotency.Result{Body: fmt.Append(nil, i)}))
			require.NoError(t, err)
		})
	}
	wg.Wait()
	b.oneRan(t, receipts)
}

func TestWindowOtherPayloadRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{})
	_, err := b.store.Do(t.Context(), op, payload("10 francs"), effect(idempotency.Result{Body: []byte("paid 10")}))
	require.NoError(t, err)
	receipt, err := b.store.Do(t.Context(), op, payload("20 francs"), effect(idempotency.Result{}))
	require.ErrorIs(t, err, idempotency.ErrMismatch)
	require.Zero(t, receipt, "the old result was shown to another request")
	require.EqualValues(t, 1, b.points(t))
}

func TestWindowCommitLandedAnswerLost(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{})
	lost := b.fault(t, fault.Rule{Method: "Commit", Tag: "spanqueue-do", Nth: 1, Do: fault.After(codes.Unknown, "the answer was lost")})
	first, err := b.store.Do(t.Context(), op, payload("p"), effect(idempotency.Result{Body: []byte("made")}))
	require.NoError(t, err)
	require.Equal(t, 1, lost.Applied())
	require.False(t, first.Replayed, "the effect is this call's own")
	require.Equal(t, "made", string(first.Body))
	second, err := b.store.Do(t.Context(), op, payload("p"), effect(idempotency.Result{}))
	require.NoError(t, err)
	require.True(t, second.Replayed)
	require.Equal(t, first.Result, second.Result)
	require.EqualValues(t, 1, b.points(t))
}

func TestWindowCrashBeforeCommit(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{})
	require.Panics(t, func() {
		_, _ = b.store.Do(t.Context(), op, payload("p"), func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
			require.NoError(t, addPoint(ctx, tx))
			panic("crash")
		})
	})
	require.Zero(t, b.points(t))
	require.Zero(t, b.records(t), "something of the crashed try remains")
	receipt, err := b.store.Do(t.Context(), op, payload("p"), effect(idempotency.Result{}))
	require.NoError(t, err)
	require.False(t, receipt.Replayed)
	require.EqualValues(t, 1, b.points(t))
}

func TestWindowCallerTimesOutWhileTheWorkCompletes(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{})
	onItsWay := b.fault(t, fault.Rule{Method: "Commit", Tag: "spanqueue-do", Nth: 1, Do: fault.HoldReply()})
	looks := b.count(t, fault.Rule{Method: "StreamingRead", Match: looksAtARecord})
	ctx, hangUp := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := b.store.Do(ctx, op, payload("p"), effect(idempotency.Result{Body: []byte("made")}))
		done <- err
	}()
	require.NoError(t, onItsWay.Wait(t.Context()))
	hangUp()
	for range 50 { // long enough for a commit that is ended to be looked up
		require.EqualValues(t, 1, b.points(t))
	}
	onItsWay.Release()
	require.NoError(t, <-done)
	require.Zero(t, looks.Matched(), "the end of the caller ended a commit that was on its way")
	receipt, err := b.store.Do(t.Context(), op, payload("p"), effect(idempotency.Result{}))
	require.NoError(t, err)
	require.True(t, receipt.Replayed)
	require.Equal(t, "made", string(receipt.Body))
	require.EqualValues(t, 1, b.points(t))
}

func TestWindowStaleOwnerAfterTakeover(t *testing.T) {
	t.Parallel()
	_, err := takenOver(t, func(ctx context.Context, _ *bench, run *idempotency.Run) error {
		return run.Complete(ctx, effect(idempotency.Result{Code: 1}))
	})
	require.ErrorIs(t, err, idempotency.ErrNotOwner)
}

func TestWindowOutsideCallOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	_, p := newTrip(t, idempotency.Config{})
	p.gateway.forgetful = true // a second call would be a second charge
	p.outside = idempotency.Outside[charge]{AtMostOnce: true, Call: loseAnswer(p.gateway)}
	_, err := p.order(t.Context())
	require.ErrorIs(t, err, idempotency.ErrUncertain)

	p.outside.Reconcile = p.gateway.find
	receipt, err := p.order(t.Context())
	require.NoError(t, err)
	require.Equal(t, "ride-1 ch_a", string(receipt.Body))
	calls, charges := p.gateway.counts()
	require.Equal(t, 1, calls)
	require.Equal(t, 1, charges)
}

func TestWindowExpiredKey(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{}, rides)
	// The effect's own unique key outlives the record, and the effect says what
	// its refusal means.
	order := func() error {
		_, err := b.store.Do(t.Context(), ride, payload("p"), func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
			_, err := tx.ReadRow(ctx, "Rides", spanner.Key{ride.Key}, []string{"Id"})
			if err == nil {
				return idempotency.Result{}, fmt.Errorf("ride of %v: %w", ride, idempotency.ErrExpired)
			}
			if !errors.Is(err, spanner.ErrRowNotFound) {
				return idempotency.Result{}, err
			}
			return idempotency.Result{}, tx.BufferWrite([]*spanner.Mutation{
				spanner.Insert("Rides", []string{"Request", "Id"}, []any{ride.Key, "ride-1"}),
			})
		})
		return err
	}
	require.NoError(t, order())
	b.age(t, ride, 49*time.Hour)
	require.ErrorIs(t, order(), idempotency.ErrExpired)

	// An operation without such a key is done anew. This is documented.
	_, err := b.store.Do(t.Context(), op, payload("p"), effect(idempotency.Result{}))
	require.NoError(t, err)
	b.age(t, op, 49*time.Hour)
	_, err = b.store.Do(t.Context(), op, payload("p"), effect(idempotency.Result{}))
	require.NoError(t, err)
	require.EqualValues(t, 2, b.points(t))
}

func TestWindowStoredSuccessAfterTheResourceIsGone(t *testing.T) {
	t.Parallel()
	b, p := newTrip(t, idempotency.Config{})
	first, err := p.order(t.Context())
	require.NoError(t, err)
	for _, change := range []*spanner.Mutation{
		spanner.Update("Rides", []string{"Request", "ChargeId"}, []any{ride.Key, "refunded"}),
		spanner.Delete("Rides", spanner.Key{ride.Key}),
	} {
		_, err := b.client.Apply(t.Context(), []*spanner.Mutation{change})
		require.NoError(t, err)
		again, err := p.order(t.Context())
		require.NoError(t, err)
		require.True(t, again.Replayed)
		require.Equal(t, first.Result, again.Result, "a receipt says what the answer was")
	}
}
