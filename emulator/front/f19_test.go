package front_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
)

// F19 (a): an abort, wherever it meets the transaction, reaches the function in a shape that survives wrapping, and the
// client runs the function again: what it did takes effect once.
func TestF19AbortedSurvivesWrapping(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]fault.Rule{
		"first statement":  {Method: "ExecuteSql", SQL: "DELETE", Nth: 1},
		"second statement": {Method: "ExecuteSql", SQL: "Effects", Nth: 1},
		"read":             {Method: "StreamingRead", Nth: 1},
		"query":            {Method: "ExecuteStreamingSql", SQL: "SELECT N", Nth: 1},
		"batch":            {Method: "ExecuteBatchDml", Nth: 1},
		"commit":           {Method: "Commit", Match: front.InReadWrite, Tag: "f19", Nth: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := emulatortest.Database(t, taskQueue, effectsTable)
			s, addr := newFront(t, db.Emulator().BackendAddr(), front.Options{})
			c := clientAt(t, addr, db.Name)
			apply(t, c, spanner.Send("Tasks", spanner.Key{1}, "x"), spanner.Insert("Effects", []string{"Id", "N"}, []any{1, 0}))
			rule.Do = fault.Abort()
			h := s.Faults().Add(rule)
			runs := 0
			_, err := c.ReadWriteTransactionWithOptions(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
				runs++
				wrap := func(what string, err error) error {
					if err == nil {
						return nil
					}
					return fmt.Errorf("handle the message: %w", fmt.Errorf("%s: %w", what, err))
				}
				if _, err := tx.Update(ctx, spanner.NewStatement("DELETE FROM Tasks WHERE Id = 1 ASSERT_ROWS_MODIFIED 1")); err != nil {
					return wrap("ack", err)
				}
				if _, err := tx.Update(ctx, spanner.NewStatement("UPDATE Effects SET N = N + 1 WHERE Id = 1")); err != nil {
					return wrap("effect", err)
				}
				if _, err := tx.ReadRow(ctx, "Effects", spanner.Key{1}, []string{"N"}); err != nil {
					return wrap("read", err)
				}
				if err := drain(tx.Query(ctx, spanner.NewStatement("SELECT N FROM Effects"))); err != nil {
					return wrap("query", err)
				}
				_, err := tx.BatchUpdate(ctx, []spanner.Statement{spanner.NewStatement("DELETE FROM Effects WHERE Id = 2")})
				return wrap("batch", err)
			}, spanner.TransactionOptions{TransactionTag: "f19"})
			require.NoError(t, err)
			require.Equal(t, 1, h.Applied())
			require.Equal(t, 2, runs)
			require.Equal(t, []int64{1}, values[int64](t, c, "SELECT N FROM Effects"))
			require.Empty(t, values[int64](t, c, "SELECT Id FROM Tasks"))
			require.Zero(t, s.Stats().OpenTransactions)
		})
	}
}

// One that is flattened to text is an error like any other: the client gives up, and nothing was kept.
func TestF19AbortedAsText(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, taskQueue, effectsTable)
	s, addr := newFront(t, db.Emulator().BackendAddr(), front.Options{})
	c := clientAt(t, addr, db.Name)
	apply(t, c, spanner.Send("Tasks", spanner.Key{1}, "x"))
	s.Faults().Add(fault.Rule{Method: "ExecuteSql", SQL: "Effects", Nth: 1, Do: fault.Abort()})
	runs := 0
	_, err := c.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		runs++
		if _, err := tx.Update(ctx, spanner.NewStatement("DELETE FROM Tasks WHERE Id = 1 ASSERT_ROWS_MODIFIED 1")); err != nil {
			return err
		}
		if _, err := tx.Update(ctx, spanner.NewStatement("INSERT INTO Effects (Id, N) VALUES (1, 1)")); err != nil {
			return errors.New(err.Error())
		}
		return nil
	})
	require.Error(t, err)
	require.Equal(t, 1, runs)
	require.Equal(t, []int64{1}, values[int64](t, c, "SELECT Id FROM Tasks"), "the message is not lost")
	eventually(t, "the transaction is left open", func() bool { return s.Stats().OpenTransactions == 0 })
}
