package processor_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// A transaction of the user's own: it inserts a receipt, whose key is made before, and has an effect.
func TestResolve(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		action fault.Action
		runs   int64
	}{
		"nothing happens":        {fault.Delay(0), 1},
		"landed, no answer":      {fault.Drop(), 1},
		"landed, deadline":       {fault.After(codes.DeadlineExceeded, "late"), 1},
		"landed, unknown":        {fault.After(codes.Unknown, "broken"), 1},
		"landed, stream reset":   {streamReset(), 2}, // Google's client runs it again, and meets its own receipt
		"landed, forgotten":      {fault.Forget(), 1},
		"did not land, internal": {fault.Before(codes.Internal, "broken"), 2},
		"did not land, aborted":  {fault.Abort(), 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "CREATE TABLE Receipts (Id STRING(64) NOT NULL) PRIMARY KEY (Id)")
			h := w.fault(fault.Rule{Method: "Commit", Tag: "mine", Nth: 1, Do: c.action})
			var runs atomic.Int64
			err := processor.Resolve(t.Context(), w.client, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
				runs.Add(1)
				if _, err := tx.Update(ctx, spanner.NewStatement("INSERT INTO Receipts (Id) VALUES ('r1')")); err != nil {
					return err
				}
				return effect(ctx, tx, "r1")
			}, func(ctx context.Context) (bool, error) {
				_, err := w.client.Single().ReadRow(ctx, "Receipts", spanner.Key{"r1"}, []string{"Id"})
				if errors.Is(err, spanner.ErrRowNotFound) {
					return false, nil
				}
				return err == nil, err
			}, processor.ResolveOptions{CommitTimeout: 300 * time.Millisecond, Tag: "mine"})
			require.NoError(t, err)
			require.Equal(t, 1, h.Applied())
			require.GreaterOrEqual(t, runs.Load(), c.runs)
			require.EqualValues(t, 1, w.effects("r1"))
		})
	}
}

func TestResolveErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	never := func(context.Context) (bool, error) { t.Error("asked without need"); return false, nil }
	mine := errors.New("mine")
	err := processor.Resolve(t.Context(), w.client, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		if err := effect(ctx, tx, "x"); err != nil {
			return err
		}
		return mine
	}, never, processor.ResolveOptions{})
	require.ErrorIs(t, err, mine)

	err = processor.Resolve(t.Context(), w.client, func(_ context.Context, tx *spanner.ReadWriteTransaction) error {
		return tx.BufferWrite([]*spanner.Mutation{spanner.Insert("Nowhere", []string{"Id"}, []any{1})})
	}, never, processor.ResolveOptions{})
	require.Equal(t, codes.NotFound, spanner.ErrCode(err), "the database's refusal: %v", err)

	w.fault(fault.Rule{Method: "Commit", Tag: "lost", Do: fault.Before(codes.Unknown, "broken")})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err = processor.Resolve(ctx, w.client, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error { return effect(ctx, tx, "x") },
		func(context.Context) (bool, error) { cancel(); return false, nil }, processor.ResolveOptions{Tag: "lost"})
	require.ErrorIs(t, err, processor.ErrUnresolved)
	require.Zero(t, w.effects("x"))
	nothing := func(context.Context, *spanner.ReadWriteTransaction) error { t.Error("run without need"); return nil }
	require.ErrorIs(t, processor.Resolve(t.Context(), w.client, nothing, never, processor.ResolveOptions{CommitTimeout: -1}), processor.ErrInvalid)
	require.ErrorIs(t, processor.Resolve(t.Context(), w.client, nothing, nil, processor.ResolveOptions{}), processor.ErrInvalid)
	require.ErrorIs(t, processor.Resolve(t.Context(), w.client, nil, never, processor.ResolveOptions{}), processor.ErrInvalid)
	require.ErrorIs(t, processor.Resolve(t.Context(), nil, nothing, never, processor.ResolveOptions{}), processor.ErrInvalid)
}
