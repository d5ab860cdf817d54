package idempotency_test

import (
	"context"
	"errors"
	"testing"

	"cloud.google.com/go/spanner"
	sppb "cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/idempotency"
)

// The database aborts the transaction at a statement. It runs again, whether
// the effect hands the error on, wraps it, or makes a text of it.
func TestAbortIsKnownInEveryDisguise(t *testing.T) {
	t.Parallel()
	for name, disguise := range map[string]func(error) error{
		"as it is":      func(err error) error { return err },
		"wrapped":       func(err error) error { return errors.Join(errors.New("add a point"), err) },
		"a text":        func(err error) error { return errors.New("add a point: " + err.Error()) },
		"swallowed":     func(error) error { return errors.New("something went wrong") },
		"a refusal":     func(error) error { return idempotency.Refuse(idempotency.Result{Code: 402}) },
		"another's one": func(error) error { return idempotency.ErrExpired },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, idempotency.Config{})
			abort := b.fault(t, fault.Rule{Method: "StreamingRead", Tag: "spanqueue-do", Nth: 1, Do: fault.Abort(),
				Match: func(c fault.Call) bool {
					r, ok := c.Request.(*sppb.ReadRequest)
					return ok && r.Table == "Accounts"
				}})
			runs := 0
			receipt, err := b.store.Do(t.Context(), op, payload("p"), func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
				runs++
				if err := addPoint(ctx, tx); err != nil {
					return idempotency.Result{}, disguise(err)
				}
				return idempotency.Result{Code: 1}, nil
			})
			require.NoError(t, err)
			require.Equal(t, 1, abort.Applied())
			require.Equal(t, 2, runs)
			require.False(t, receipt.Refused, "a refusal was kept that an aborted run had come to")
			require.EqualValues(t, 1, b.points(t))
		})
	}
}

// The database aborts one of the claim's own requests.
func TestAbortOfTheClaim(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"StreamingRead", "ExecuteStreamingSql"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, idempotency.Config{})
			_, err := b.store.Do(t.Context(), op, payload("p"), effect(idempotency.Result{Code: 1}))
			require.NoError(t, err)
			abort := b.fault(t, fault.Rule{Method: method, Tag: "spanqueue-do", Nth: 1, Do: fault.Abort()})
			receipt, err := b.store.Do(t.Context(), op, payload("p"), effect(idempotency.Result{}))
			require.NoError(t, err)
			require.Equal(t, 1, abort.Applied())
			require.True(t, receipt.Replayed)
			require.EqualValues(t, 1, receipt.Code)
		})
	}
}

// An ABORTED that the effect has made up, or that comes from another service,
// is an error like others. Google's client alone would run the effect for ever.
func TestAbortedOfTheEffectsOwnIsItsError(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{})
	own := status.Error(codes.Aborted, "another service")
	for name, act := range map[string]func(run func() error) error{
		"Do": func(run func() error) error {
			_, err := b.store.Do(t.Context(), op, payload("p"), func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
				return idempotency.Result{}, errors.Join(addPoint(ctx, tx), run())
			})
			return err
		},
		"Steps": func(run func() error) error {
			_, err := b.store.Steps(t.Context(), ride, payload("p"), func(ctx context.Context, r *idempotency.Run) error {
				_, err := idempotency.Local(ctx, r, "x", func(ctx context.Context, tx *spanner.ReadWriteTransaction) (int, error) {
					return 1, errors.Join(addPoint(ctx, tx), run())
				})
				return err
			})
			return err
		},
	} {
		runs := 0
		err := act(func() error { runs++; return own })
		require.ErrorIs(t, err, own, name)
		require.Equal(t, codes.Aborted, spanner.ErrCode(err), name)
		require.Equal(t, 1, runs, name)
	}
	require.Zero(t, b.points(t))
	require.Zero(t, b.records(t))
}
