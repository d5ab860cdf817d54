package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/idempotency"
)

func TestRefusalDropsTheEffectAndIsKept(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{})
	runs := 0
	for _, replayed := range []bool{false, true} {
		receipt, err := b.store.Do(t.Context(), op, payload("p"), func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
			runs++
			return idempotency.Result{}, errors.Join(addPoint(ctx, tx), idempotency.Refuse(idempotency.Result{Code: 402, Body: []byte("declined")}))
		})
		require.NoError(t, err)
		require.True(t, receipt.Refused)
		require.Equal(t, replayed, receipt.Replayed)
		require.EqualValues(t, 402, receipt.Code)
		require.Equal(t, "declined", string(receipt.Body))
	}
	require.Equal(t, 1, runs)
	require.Zero(t, b.points(t))
}

func TestResultThatCannotBeKept(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{MaxBody: 10})
	for _, c := range []struct {
		result idempotency.Result
		want   error
	}{
		{idempotency.Result{Body: make([]byte, 11)}, idempotency.ErrTooLarge},
		{idempotency.Result{Type: strings.Repeat("t", 256)}, idempotency.ErrInvalid},
		{idempotency.Result{ResourceID: strings.Repeat("r", 1025)}, idempotency.ErrInvalid},
		{idempotency.Result{Type: "text/caf\xe9"}, idempotency.ErrInvalid},
		{idempotency.Result{ResourceID: "/caf\xe9"}, idempotency.ErrInvalid},
	} {
		_, err := b.store.Do(t.Context(), op, payload("p"), effect(c.result))
		require.ErrorIs(t, err, c.want)
		require.Zero(t, b.points(t), "refused after the commit")
	}
	_, err := b.store.Do(t.Context(), op, payload("p"), effect(idempotency.Result{
		Body: make([]byte, 10), Type: strings.Repeat("ß", 255), ResourceID: strings.Repeat("ß", 1024),
	}))
	require.NoError(t, err)
}

func TestLargeBodyIsDroppedAndMarked(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"Do", "Steps"} {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, answer lost=%v", how, lost), func(t *testing.T) {
				t.Parallel()
				b := newBench(t, idempotency.Config{MaxBody: 10, DropLargeBodies: true})
				if lost {
					b.fault(t, fault.Rule{Method: "Commit", Match: func(c fault.Call) bool { return c.Tag == "spanqueue-do" || c.Tag == "spanqueue-step" },
						Nth: 1, Do: fault.After(codes.Unknown, "lost")})
				}
				run := func() (idempotency.Receipt, error) {
					e := effect(idempotency.Result{Code: 201, Body: []byte("12345678901"), ResourceID: "r/1"})
					if how == "Do" {
						return b.store.Do(t.Context(), op, payload("p"), e)
					}
					return b.store.Steps(t.Context(), op, payload("p"), func(ctx context.Context, run *idempotency.Run) error { return run.Complete(ctx, e) })
				}
				first, err := run()
				require.NoError(t, err)
				require.Equal(t, "12345678901", string(first.Body), "the call that made it gets it in full")
				require.True(t, first.BodyDropped)
				second, err := run()
				require.NoError(t, err)
				require.True(t, second.Replayed && second.BodyDropped)
				require.Empty(t, second.Body)
				require.EqualValues(t, 201, second.Code)
				require.Equal(t, "r/1", second.ResourceID)
			})
		}
	}
}

func TestPresentShowsTheResourceAsItIs(t *testing.T) {
	t.Parallel()
	present := "as it was"
	errGone := errors.New("the resource is gone")
	b := newBench(t, idempotency.Config{Present: func(_ context.Context, o idempotency.Operation, r idempotency.Receipt) (idempotency.Result, error) {
		if present == "" {
			return idempotency.Result{}, errGone
		}
		return idempotency.Result{Code: 200, Body: []byte(o.Name + " " + r.ResourceID + " " + present)}, nil
	}})
	do := func() (idempotency.Receipt, error) {
		return b.store.Do(t.Context(), op, payload("p"), effect(idempotency.Result{Code: 201, ResourceID: "r/1"}))
	}
	first, err := do()
	require.NoError(t, err)
	require.False(t, first.Present)
	require.EqualValues(t, 201, first.Code)

	present = "changed"
	second, err := do()
	require.NoError(t, err)
	require.True(t, second.Present && second.Replayed)
	require.Equal(t, "add point r/1 changed", string(second.Body))
	looked, err := b.store.Lookup(t.Context(), op)
	require.NoError(t, err)
	require.True(t, looked.Present)

	present = ""
	third, err := do()
	require.ErrorIs(t, err, errGone)
	require.True(t, third.Replayed, "what is known of the receipt is given all the same")
	require.Equal(t, "r/1", third.ResourceID)

	// A body that was kept is never replaced.
	other := op
	other.Key = "with body"
	for range 2 {
		r, err := b.store.Do(t.Context(), other, payload("p"), effect(idempotency.Result{Body: []byte("kept"), ResourceID: "r/2"}))
		require.NoError(t, err)
		require.Equal(t, "kept", string(r.Body))
		require.False(t, r.Present)
	}
}
