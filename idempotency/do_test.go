package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	sppb "cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/idempotency"
)

func TestDoRunsOnceAndReplays(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{})
	calls := 0
	do := func() (idempotency.Receipt, error) {
		return b.store.Do(t.Context(), op, payload("p"), func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
			calls++
			return idempotency.Result{Code: 201, Type: "text/plain", Version: 3, Body: []byte("made"), ResourceID: "r/1"}, addPoint(ctx, tx)
		})
	}
	first, err := do()
	require.NoError(t, err)
	require.False(t, first.Replayed)
	require.False(t, first.Completed.IsZero())
	require.Equal(t, 48*time.Hour, first.Expires.Sub(first.Completed))

	second, err := do()
	require.NoError(t, err)
	require.True(t, second.Replayed)
	second.Replayed = false
	require.Equal(t, first, second)
	require.Equal(t, 1, calls)
	require.EqualValues(t, 1, b.points(t))
	require.EqualValues(t, 1, b.records(t))

	looked, err := b.store.Lookup(t.Context(), op)
	require.NoError(t, err)
	require.Equal(t, first.Result, looked.Result)
}

// Scope, name and key each make another operation; so does case. Equal payloads
// under different keys are two operations.
func TestOperationsAreApart(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{})
	ops := []idempotency.Operation{
		{Scope: "a", Name: "n", Key: "k"}, {Scope: "b", Name: "n", Key: "k"}, {Scope: "a", Name: "m", Key: "k"},
		{Scope: "a", Name: "n", Key: "l"}, {Scope: "A", Name: "n", Key: "k"}, {Scope: "a", Name: "n", Key: "K"},
		{Scope: "a:n", Name: "k", Key: "k"}, {Scope: "a", Name: "n:k", Key: "k"},
	}
	for range 2 {
		for _, o := range ops {
			_, err := b.do(t, o, payload("p"))
			require.NoError(t, err)
		}
	}
	require.EqualValues(t, len(ops), b.points(t))
	require.EqualValues(t, len(ops), b.records(t))
}

// F24: nothing of an uncommitted try remains, whatever the key looks like: what
// is stored, looked up and deleted is one key.
func TestFailedTryLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{})
	for i, key := range []string{
		"tenant/42:key", "UPPER", "upper", `"quoted" 'key'`, "`; DROP TABLE Operations", strings.Repeat("k", 255), strings.Repeat("ß", 255),
		"日本語 🚲", " spaces ", "a\x00b", "%s\n",
	} {
		o := idempotency.Operation{Scope: "tenant:1", Name: "n", Key: key}
		for _, how := range []string{"error", "panic", "release"} {
			func() {
				defer func() { _ = recover() }()
				fail := func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
					require.NoError(t, addPoint(ctx, tx))
					if how == "panic" {
						panic("crash")
					}
					return idempotency.Result{}, errCrash
				}
				if how == "release" {
					_, _ = b.store.Steps(t.Context(), o, payload("p"), func(ctx context.Context, run *idempotency.Run) error {
						return run.Complete(ctx, fail)
					})
					return
				}
				_, _ = b.store.Do(t.Context(), o, payload("p"), fail)
			}()
			require.EqualValues(t, i, b.records(t), "%s of %q left a record", how, key)
		}
		receipt, err := b.do(t, o, payload("p"))
		require.NoError(t, err)
		require.False(t, receipt.Replayed)
		require.EqualValues(t, i+1, b.points(t))
		receipt, err = b.do(t, o, payload("p"))
		require.NoError(t, err)
		require.True(t, receipt.Replayed)
	}
}

func TestDoReturnsTheEffectsErrorAndKeepsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{})
	for _, want := range []error{
		errors.New("out of stock"),
		status.Error(codes.Unavailable, "another service"),
		// For these the client alone would run the function again.
		status.Error(codes.Internal, "stream terminated by RST_STREAM"),
		fmt.Errorf("wrapped: %w", status.Error(codes.ResourceExhausted, "quota")),
	} {
		runs := 0
		_, err := b.store.Do(t.Context(), op, payload("p"), func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
			runs++
			return idempotency.Result{}, errors.Join(addPoint(ctx, tx), want)
		})
		require.ErrorIs(t, err, want)
		require.Equal(t, spanner.ErrCode(want), spanner.ErrCode(err))
		require.Equal(t, 1, runs)
	}
	require.Zero(t, b.points(t))
	require.Zero(t, b.records(t))
}

func TestDoRunsAgainWhenAborted(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{})
	b.fault(t, fault.Rule{Method: "Commit", Tag: "spanqueue-do", Times: 2, Do: fault.Abort()})
	runs := 0
	receipt, err := b.store.Do(t.Context(), op, payload("p"), func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
		runs++
		return idempotency.Result{}, addPoint(ctx, tx)
	})
	require.NoError(t, err)
	require.False(t, receipt.Replayed)
	require.Equal(t, 3, runs)
	require.EqualValues(t, 1, b.points(t))
}

func TestDoEndsWithItsContextAndSaysWhy(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{HandlerTimeout: 30 * time.Millisecond})
	waits := func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
		<-ctx.Done()
		return idempotency.Result{}, ctx.Err()
	}
	_, err := b.store.Do(t.Context(), op, payload("p"), waits)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "HandlerTimeout")

	patient := b.newStore(t, idempotency.Config{})
	gone := errors.New("client closed request")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err = patient.Do(ctx, op, payload("p"), func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
		cancel(gone)
		return waits(ctx, tx)
	})
	require.ErrorIs(t, err, gone)

	_, err = patient.Do(ctx, op, payload("p"), effect(idempotency.Result{}))
	require.ErrorIs(t, err, gone, "an ended context must not begin anything")
	require.Zero(t, b.records(t))
}

func TestDoInsideATransactionIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{})
	_, err := b.store.Do(t.Context(), op, payload("p"), func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
		inner := op
		inner.Key = "inner"
		_, err := b.store.Do(ctx, inner, payload("p"), effect(idempotency.Result{}))
		return idempotency.Result{}, err
	})
	require.ErrorContains(t, err, "nested")
	require.Zero(t, b.records(t))
}

// A new operation with buffered writes costs two requests.
func TestRequestsOfOneOperation(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{})
	write := func(context.Context, *spanner.ReadWriteTransaction) (idempotency.Result, error) {
		return idempotency.Result{}, nil
	}
	all := b.count(t, fault.Rule{})
	count := func(f func()) int {
		before := all.Matched()
		f()
		return all.Matched() - before
	}
	require.Equal(t, 2, count(func() {
		_, err := b.store.Do(t.Context(), op, payload("p"), write)
		require.NoError(t, err)
	}), "new")
	require.Equal(t, 3, count(func() {
		_, err := b.store.Do(t.Context(), op, payload("p"), write)
		require.NoError(t, err)
	}), "replay: read, time, rollback")
	require.Equal(t, 1, count(func() {
		_, err := b.store.Lookup(t.Context(), op)
		require.NoError(t, err)
	}), "look")
	other := op
	other.Key = "steps"
	require.Equal(t, 4, count(func() {
		_, err := b.store.Steps(t.Context(), other, payload("p"), func(ctx context.Context, run *idempotency.Run) error { return run.Complete(ctx, write) })
		require.NoError(t, err)
	}), "claim and end")
}

// Whatever the client's defaults are, a claim is serializable and pessimistic,
// and reads with an exclusive lock.
func TestIsolationIsTheLibrarys(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{})
	begun := make(chan *sppb.ReadRequest, 16)
	b.count(t, fault.Rule{Method: "StreamingRead", Match: func(c fault.Call) bool {
		req, ok := c.Request.(*sppb.ReadRequest)
		if ok && req.GetTransaction().GetBegin() != nil {
			begun <- req
		}
		return false
	}})
	client := b.db.ClientWithConfig(t, spanner.ClientConfig{TransactionOptions: spanner.TransactionOptions{
		IsolationLevel: sppb.TransactionOptions_REPEATABLE_READ,
		ReadLockMode:   sppb.TransactionOptions_ReadWrite_OPTIMISTIC,
	}})
	store, err := idempotency.New(client, b.table, idempotency.Config{})
	require.NoError(t, err)
	for _, run := range []func() error{
		func() error {
			_, err := store.Do(t.Context(), op, payload("p"), effect(idempotency.Result{}))
			return err
		},
		func() error {
			_, err := store.Steps(t.Context(), ride, payload("p"), func(context.Context, *idempotency.Run) error { return errCrash })
			if errors.Is(err, errCrash) {
				return nil
			}
			return err
		},
	} {
		require.NoError(t, run())
	}
	require.Len(t, begun, 3, "Do, the claim of Steps, its release")
	for range 3 {
		req := <-begun
		require.Equal(t, sppb.TransactionOptions_SERIALIZABLE, req.Transaction.GetBegin().IsolationLevel)
		require.Equal(t, sppb.TransactionOptions_ReadWrite_PESSIMISTIC, req.Transaction.GetBegin().GetReadWrite().ReadLockMode)
		require.Equal(t, sppb.ReadRequest_LOCK_HINT_EXCLUSIVE, req.LockHint)
	}
}
