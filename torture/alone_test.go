package main

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"
	"google.golang.org/api/option"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
)

// aloneOnBare is a client of the bare emulator that runs one transaction at a time, and its gate.
func aloneOnBare(t *testing.T) (*spanner.Client, *alone) {
	t.Helper()
	db := emulatortest.Database(t, tables.Statements()...)
	a := newAlone()
	var opts []option.ClientOption
	for _, o := range a.options() {
		opts = append(opts, option.WithGRPCDialOption(o))
	}
	return db.Bare(t, opts...), a
}

// Many transactions at once on one client are what the bare emulator cannot bear. Here each of them adds one.
func TestAloneRunsOneTransactionAtATime(t *testing.T) {
	t.Parallel()
	client, a := aloneOnBare(t)
	const workers, each = 6, 10
	var all sync.WaitGroup
	errs := make(chan error, workers*each)
	runs := make(chan struct{}, 10*workers*each)
	for range workers {
		all.Go(func() {
			for range each {
				_, err := client.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
					runs <- struct{}{}
					_, err := tx.Update(ctx, spanner.NewStatement("INSERT OR UPDATE INTO Effects (Id, N) VALUES ('one', 1 + IFNULL((SELECT N FROM Effects WHERE Id = 'one'), 0))"))
					return err
				})
				errs <- err
			}
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	row, err := client.Single().ReadRow(t.Context(), "Effects", spanner.Key{"one"}, []string{"N"})
	require.NoError(t, err)
	var n int64
	require.NoError(t, row.Columns(&n))
	require.EqualValues(t, workers*each, n)
	require.Len(t, runs, workers*each, "none met another, so none ran twice")
	require.Empty(t, a.turn)
}

// However a transaction ends, the next one gets its turn.
func TestAloneGivesTheTurnUp(t *testing.T) {
	t.Parallel()
	wrong := errors.New("wrong")
	insert := spanner.NewStatement("INSERT INTO Effects (Id, N) VALUES ('one', 1)")
	bad := spanner.NewStatement("INSERT INTO Nowhere (Id) VALUES ('one')")
	for name, f := range map[string]func(context.Context, *spanner.ReadWriteTransaction) error{
		"nothing is done": func(context.Context, *spanner.ReadWriteTransaction) error { return nil },
		"only mutations": func(_ context.Context, tx *spanner.ReadWriteTransaction) error {
			return tx.BufferWrite([]*spanner.Mutation{spanner.Insert("Effects", []string{"Id", "N"}, []any{"two", 2})})
		},
		"a failing commit": func(_ context.Context, tx *spanner.ReadWriteTransaction) error {
			return tx.BufferWrite([]*spanner.Mutation{spanner.Insert("Nowhere", []string{"Id"}, []any{"two"})})
		},
		"a rollback": func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			_, err := tx.Update(ctx, insert)
			return errors.Join(err, wrong)
		},
		"a failing first statement": func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			_, err := tx.Update(ctx, bad)
			return err
		},
		"a failing second statement": func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			_, err := tx.Update(ctx, insert)
			if err == nil {
				_, err = tx.Update(ctx, bad)
			}
			return err
		},
		"a failing first read": func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			_, err := tx.ReadRow(ctx, "Nowhere", spanner.Key{"one"}, []string{"Id"})
			return err
		},
		"a batch whose first statement fails": func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			_, err := tx.BatchUpdate(ctx, []spanner.Statement{bad, insert})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, a := aloneOnBare(t)
			_, _ = client.ReadWriteTransaction(t.Context(), f) // whatever becomes of it
			_, err := client.Apply(t.Context(), []*spanner.Mutation{spanner.Insert("Effects", []string{"Id", "N"}, []any{"next", 1})})
			require.NoError(t, err)
			require.Empty(t, a.turn)
		})
	}
}

// Who gives up waiting leaves the turn to others.
func TestAloneWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAlone()
		require.NoError(t, a.take(t.Context()))
		waiting, giveUp := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- a.take(waiting) }()
		synctest.Wait() // it waits
		require.Empty(t, ended)
		giveUp()
		require.Equal(t, codes.Canceled, status.Code(<-ended))
		a.begun([]byte("one"))
		a.give("another")
		require.Len(t, a.turn, 1, "only who has the turn can give it up")
		a.give("one")
		require.NoError(t, a.take(t.Context()))
	})
}
