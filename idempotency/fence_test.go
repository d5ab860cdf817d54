package idempotency_test

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/idempotency"
)

// takenOver starts an operation in steps, lets its lease end by the database's
// clock, lets another call finish it, and returns what the first call's act
// then comes to.
func takenOver(t *testing.T, act func(context.Context, *bench, *idempotency.Run) error) (*bench, error) {
	t.Helper()
	b := newBench(t, idempotency.Config{})
	other := b.newStore(t, idempotency.Config{})
	_, err := b.store.Steps(t.Context(), ride, payload("p"), func(ctx context.Context, run *idempotency.Run) error {
		b.age(t, ride, time.Hour)
		receipt, err := other.Steps(t.Context(), ride, payload("p"), func(ctx context.Context, run *idempotency.Run) error {
			return run.Complete(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
				return idempotency.Result{Code: 2}, addPoint(ctx, tx)
			})
		})
		require.NoError(t, err)
		require.False(t, receipt.Replayed)
		return act(ctx, b, run)
	})
	require.EqualValues(t, 1, b.points(t), "a stale owner's effect was kept")
	receipt, lookErr := b.store.Lookup(t.Context(), ride)
	require.NoError(t, lookErr)
	require.EqualValues(t, 2, receipt.Code, "a stale owner's result was kept")
	return b, err
}

func TestStaleOwnerIsRefused(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(context.Context, *bench, *idempotency.Run) error{
		"Local": func(ctx context.Context, _ *bench, run *idempotency.Run) error {
			_, err := idempotency.Local(ctx, run, "x", func(ctx context.Context, tx *spanner.ReadWriteTransaction) (int, error) {
				t.Error("the step ran")
				return 1, addPoint(ctx, tx)
			})
			return err
		},
		"Outside": func(ctx context.Context, _ *bench, run *idempotency.Run) error {
			_, err := idempotency.Outside[int]{Call: func(context.Context, string) (int, error) { return 1, nil }}.Step(ctx, run, "x")
			return err
		},
		"Outside at most once": func(ctx context.Context, _ *bench, run *idempotency.Run) error {
			_, err := idempotency.Outside[int]{AtMostOnce: true, Call: func(context.Context, string) (int, error) {
				t.Error("the call was made")
				return 1, nil
			}}.Step(ctx, run, "x")
			return err
		},
		"Complete": func(ctx context.Context, _ *bench, run *idempotency.Run) error {
			return run.Complete(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
				return idempotency.Result{Code: 1}, addPoint(ctx, tx)
			})
		},
		"Refuse": func(context.Context, *bench, *idempotency.Run) error {
			return idempotency.Refuse(idempotency.Result{Code: 1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := takenOver(t, act)
			require.ErrorIs(t, err, idempotency.ErrNotOwner)
		})
	}
}

// The token alone would do. The generation is asserted besides, and this is
// what shows it.
func TestStaleGenerationIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{})
	_, err := b.store.Steps(t.Context(), ride, payload("p"), func(ctx context.Context, run *idempotency.Run) error {
		_, err := b.client.Apply(ctx, []*spanner.Mutation{spanner.Update("Operations",
			[]string{"Scope", "Operation", "OperationKey", "Generation"}, []any{ride.Scope, ride.Name, ride.Key, 2})})
		require.NoError(t, err)
		return run.Complete(ctx, effect(idempotency.Result{}))
	})
	require.ErrorIs(t, err, idempotency.ErrNotOwner)
	require.Zero(t, b.points(t))
}

// A generation alone would not do: counting starts anew when a record is gone,
// given up before its first step or swept after its retention, and its key is
// claimed again. The owner's token tells the two lives apart.
func TestStaleOwnerOfAFormerLifeIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{})
	second := make(chan error, 1)
	begun, finish := make(chan struct{}), make(chan struct{})
	_, err := b.store.Steps(t.Context(), ride, payload("p"), func(ctx context.Context, run *idempotency.Run) error {
		_, err := b.client.Apply(ctx, []*spanner.Mutation{spanner.Delete("Operations", spanner.Key{ride.Scope, ride.Name, ride.Key})})
		require.NoError(t, err)
		go func() {
			_, err := b.newStore(t, idempotency.Config{}).Steps(t.Context(), ride, payload("p"), func(ctx context.Context, run *idempotency.Run) error {
				close(begun)
				<-finish
				return run.Complete(ctx, effect(idempotency.Result{Code: 2}))
			})
			second <- err
		}()
		<-begun
		require.EqualValues(t, 1, b.generation(t, ride), "the record is of the same generation")
		return run.Complete(ctx, effect(idempotency.Result{Code: 1}))
	})
	require.ErrorIs(t, err, idempotency.ErrNotOwner)
	require.Zero(t, b.points(t))
	close(finish)
	require.NoError(t, <-second)
	require.EqualValues(t, 1, b.points(t))
}

// Each owner is one generation on, also across an expiry that no sweep has come
// by: that life's owners must not count anew.
func TestGenerationCountsOwners(t *testing.T) {
	t.Parallel()
	b, p := newTrip(t, idempotency.Config{})
	p.crash = "ride"
	for want := int64(1); want <= 3; want++ {
		_, err := p.order(t.Context())
		require.ErrorIs(t, err, errCrash)
		require.Equal(t, want, b.generation(t, ride))
	}
	p.crash = ""
	_, err := p.order(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 4, b.generation(t, ride))
	b.age(t, ride, 49*time.Hour)
	_, err = b.store.Do(t.Context(), ride, payload("p"), nothing)
	require.NoError(t, err)
	require.EqualValues(t, 5, b.generation(t, ride))
}

func (b *bench) generation(t *testing.T, op idempotency.Operation) (n int64) {
	t.Helper()
	row, err := b.client.Single().ReadRow(t.Context(), "Operations", spanner.Key{op.Scope, op.Name, op.Key}, []string{"Generation"})
	require.NoError(t, err)
	require.NoError(t, row.Column(0, &n))
	return n
}

// Release clears an owner by name: a stale one's does not clear the next one's.
func TestStaleOwnerDoesNotReleaseItsSuccessor(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{})
	inside, leave, second := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	_, err := b.store.Steps(t.Context(), ride, payload("p"), func(context.Context, *idempotency.Run) error {
		b.age(t, ride, time.Hour)
		go func() {
			_, err := b.newStore(t, idempotency.Config{}).Steps(t.Context(), ride, payload("p"), func(ctx context.Context, run *idempotency.Run) error {
				close(inside)
				<-leave
				return run.Complete(ctx, func(context.Context, *spanner.ReadWriteTransaction) (idempotency.Result, error) {
					return idempotency.Result{}, nil
				})
			})
			second <- err
		}()
		<-inside
		return errCrash // and the first run gives up what it no longer has
	})
	require.ErrorIs(t, err, errCrash)
	_, err = b.store.Lookup(t.Context(), ride)
	after, _ := idempotency.RetryAfter(err)
	require.Positive(t, after, "the second owner lost its lease")
	close(leave)
	require.NoError(t, <-second)
}

// An application's own mistake: the error of a step is passed over. Nothing of
// that step may be kept, and no later step may be.
func TestStaleOwnerWhoIgnoresErrorsPublishesNothing(t *testing.T) {
	t.Parallel()
	_, err := takenOver(t, func(ctx context.Context, _ *bench, run *idempotency.Run) error {
		for _, name := range []string{"x", "y"} {
			_, _ = idempotency.Local(ctx, run, name, func(ctx context.Context, tx *spanner.ReadWriteTransaction) (int, error) {
				return 1, addPoint(ctx, tx)
			})
		}
		return run.Complete(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
			return idempotency.Result{Code: 1}, addPoint(ctx, tx)
		})
	})
	require.ErrorIs(t, err, idempotency.ErrNotOwner)
}

// With the fence off, the unique key of the business table is the last guard:
// two owners at work at once make one ride and one charge, and the second one
// fails loudly. unfenced is Local as it would be without the assertion.
func TestWithoutTheFenceTheUniqueKeyStillHolds(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{}, rides)
	g := &gateway{}
	unfenced := func(ctx context.Context, id string) error {
		c, err := g.charge(ctx, "key derived from "+ride.Key)
		if err != nil {
			return err
		}
		_, err = b.client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			return tx.BufferWrite([]*spanner.Mutation{
				spanner.Insert("Rides", []string{"Request", "Id", "ChargeId"}, []any{ride.Key, id, c.ID}),
			})
		})
		return err
	}
	require.NoError(t, unfenced(t.Context(), "ride of owner 1"))
	err := unfenced(t.Context(), "ride of owner 2")
	require.ErrorContains(t, err, "AlreadyExists")
	id, _ := b.rideRow(t)
	require.Equal(t, "ride of owner 1", id)
	calls, charges := g.counts()
	require.Equal(t, 2, calls)
	require.Equal(t, 1, charges)
}
