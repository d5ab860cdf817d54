package main

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/schema"
)

func TestReap(t *testing.T) {
	t.Parallel()
	table := schema.Operations{}
	db := emulatortest.Database(t, table.Statements()...)
	client := db.Client(t)
	store, err := idempotency.New(client, table, idempotency.Config{})
	require.NoError(t, err)
	do := func(key string) {
		_, err := store.Do(t.Context(), idempotency.Operation{Scope: "s", Name: "n", Key: key}, idempotency.FingerprintBytes(nil),
			func(context.Context, *spanner.ReadWriteTransaction) (idempotency.Result, error) {
				return idempotency.Result{}, nil
			})
		require.NoError(t, err)
	}
	reap := func(args ...string) (string, error) {
		var out bytes.Buffer
		cmd := newReapCommand(func(context.Context, string, string) (*spanner.Client, error) { return db.Client(t), nil })
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(append([]string{"--database", db.Name}, args...))
		cmd.SilenceUsage = true
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	older := func(key string, hours int) {
		_, err := client.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			_, err := tx.Update(ctx, spanner.Statement{
				SQL:    "UPDATE Operations SET CompletedAt = TIMESTAMP_SUB(CompletedAt, INTERVAL @hours HOUR) WHERE OperationKey = @key",
				Params: map[string]any{"key": key, "hours": hours},
			})
			return err
		})
		require.NoError(t, err)
	}
	do("a")
	do("b")
	older("a", 72) // the retention is two days
	older("b", 3)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--retention", "100h"}, "deleted  0"},
		// To look sooner deletes nothing before its own retention is over.
		{[]string{"--retention", "2h"}, "deleted  1, expired for up to 24h0m"},
		{nil, "left     1 records"},
	} {
		out, err := reap(c.args...)
		require.NoError(t, err)
		require.Contains(t, out, c.want)
	}

	// An operation that was begun and left is reported, by a hash of its key, and makes cron speak.
	_, err = store.Steps(t.Context(), idempotency.Operation{Scope: "s", Name: "n", Key: "secret"}, idempotency.FingerprintBytes(nil),
		func(ctx context.Context, run *idempotency.Run) error {
			if _, err := idempotency.Local(ctx, run, "first", func(context.Context, *spanner.ReadWriteTransaction) (int, error) { return 1, nil }); err != nil {
				return err
			}
			return errors.New("left")
		})
	require.Error(t, err)
	out, err := reap("--batch", "10")
	require.ErrorContains(t, err, "1 operations have not ended")
	require.Contains(t, out, "open     ")
	require.NotContains(t, out, "secret")

	_, err = reap("--retention", "1s")
	require.ErrorContains(t, err, "the retention is 1s")
	_, err = reap("--batch", "-1")
	require.ErrorContains(t, err, "Batch is -1")
	cmd := newReapCommand(connect)
	cmd.SetArgs([]string{"--database", "here"})
	require.ErrorContains(t, cmd.Execute(), "projects/P/instances/I/databases/D")
}
