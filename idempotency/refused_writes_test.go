package idempotency_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/schema"
)

// A write that cannot be put into bytes never leaves the client. The outcome is
// known, and running again would end in the same way.
func TestCommitThatCannotBeSentIsTheEffectsError(t *testing.T) {
	t.Parallel()
	// The client leaves the transaction open: here the next one does not wait 10 s for it.
	e := emulatortest.New(t, emulator.Options{Front: front.Options{IdleBound: 500 * time.Millisecond}})
	b := newBenchOn(t, e, schema.Operations{}, idempotency.Config{})
	runs := 0
	_, err := b.store.Do(t.Context(), op, payload("p"), func(_ context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
		runs++
		return idempotency.Result{}, tx.BufferWrite([]*spanner.Mutation{spanner.Insert("Accounts", []string{"Id", "Points"}, []any{"caf\xe9", 1})})
	})
	require.Equal(t, codes.Internal, spanner.ErrCode(err))
	require.ErrorContains(t, err, "UTF-8")
	require.NotErrorIs(t, err, idempotency.ErrUnresolved)
	require.Equal(t, 1, runs)
	require.Zero(t, b.records(t))
}

// What the database refuses for the effect's own writes is the effect's error.
func TestRefusedWritesAreTheEffectsError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		write *spanner.Mutation
		code  codes.Code
		runs  int
	}{
		{"ALREADY_EXISTS", spanner.Insert("Accounts", []string{"Id", "Points"}, []any{"a", 1}), codes.AlreadyExists, 1},
		// The same code is also a server's that has forgotten the transaction.
		{"NOT_FOUND", spanner.Update("Accounts", []string{"Id", "Points"}, []any{"nobody", 1}), codes.NotFound, 2},
		{"FAILED_PRECONDITION", spanner.InsertOrUpdate("Accounts", []string{"Id", "Points"}, []any{"b", nil}), codes.FailedPrecondition, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, idempotency.Config{})
			runs := 0
			_, err := b.store.Do(t.Context(), op, payload("p"), func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
				runs++
				return idempotency.Result{}, errors.Join(addPoint(ctx, tx), tx.BufferWrite([]*spanner.Mutation{c.write}))
			})
			require.Equal(t, c.code, spanner.ErrCode(err))
			require.NotErrorIs(t, err, idempotency.ErrUnresolved)
			require.Equal(t, c.runs, runs)
			require.Zero(t, b.points(t))
			require.Zero(t, b.records(t))
		})
	}
}
