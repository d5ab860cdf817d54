package idempotency_test

import (
	"context"
	"testing"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"

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

	second, err := do()
	require.NoError(t, err)
	require.True(t, second.Replayed)
	second.Replayed = false
	require.Equal(t, first, second)
	require.Equal(t, 1, calls)
	require.EqualValues(t, 1, b.points(t))
	require.EqualValues(t, 1, b.records(t))
}
