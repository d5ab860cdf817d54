package front_test

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
)

// The steps of the public samples.
func TestQueueSamples(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t)
	require.NoError(t, updateDDL(t, db, taskQueue, effectsTable))
	c := db.Client(t)
	open := receiveTasks(t, c, "SELECT * FROM RECEIVE_Tasks(max_duration => '1m', max_batch_size => 20)")

	// Send by mutation; the row comes while the stream is open.
	apply(t, c, spanner.Send("Tasks", spanner.Key{1}, "by mutation"))
	committed := time.Now()
	m := open.next(t)
	require.Less(t, time.Since(committed), time.Second)
	require.EqualValues(t, 1, m.ID)
	require.Equal(t, "by mutation", m.Payload)
	require.NotEmpty(t, m.LeaseToken)
	require.WithinDuration(t, time.Now().Add(10*time.Second), m.Expiration, 5*time.Second)

	// Send by SQL.
	counts, err := dml(t.Context(), c, "INSERT INTO Tasks (Id, Payload) VALUES (2, 'by SQL')")
	require.NoError(t, err)
	require.Equal(t, []int64{1}, counts)
	committed = time.Now()
	bySQL := open.next(t)
	require.Less(t, time.Since(committed), time.Second)
	require.EqualValues(t, 2, bySQL.ID)

	// Send into the future, both ways.
	due := time.Now().Add(time.Second).Round(0)
	apply(t, c, spanner.Send("Tasks", spanner.Key{3}, "later", spanner.WithDeliveryTime(due)))
	_, err = c.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		_, err := tx.Update(ctx, spanner.Statement{
			SQL:    "INSERT INTO Tasks (Id, Payload, DeliverTime) VALUES (4, 'later still', @due)",
			Params: map[string]any{"due": due.Add(100 * time.Millisecond)},
		})
		return err
	})
	require.NoError(t, err)

	// A queue reads like a table.
	require.Equal(t, []int64{1, 2, 3, 4}, values[int64](t, c, "SELECT Id FROM Tasks ORDER BY Id"))
	row, err := c.Single().ReadRow(t.Context(), "Tasks", spanner.Key{3}, []string{"DeliverTime"})
	require.NoError(t, err)
	var stored time.Time
	require.NoError(t, row.Columns(&stored))
	require.True(t, due.Equal(stored))

	// Renew, and acknowledge by mutation, without and with the message there.
	rows := renewTasks(t, c, m.LeaseToken, bySQL.LeaseToken, "no token")
	require.Len(t, rows, 2)
	require.Equal(t, m.LeaseToken, rows[0].Old)
	require.True(t, rows[0].New.Valid)
	require.True(t, rows[0].Expiration.Time.After(m.Expiration))
	require.Empty(t, renewTasks(t, c, m.LeaseToken), "the old token is dead")
	apply(t, c, spanner.Ack("Tasks", spanner.Key{1}))
	_, err = c.Apply(t.Context(), []*spanner.Mutation{spanner.Ack("Tasks", spanner.Key{1})})
	require.Equal(t, codes.NotFound, spanner.ErrCode(err))
	apply(t, c, spanner.Ack("Tasks", spanner.Key{1}, spanner.WithIgnoreNotFound(true)))
	gone := renewTasks(t, c, rows[0].New.StringVal)
	require.Len(t, gone, 1)
	require.False(t, gone[0].New.Valid, "the message was acknowledged")

	// Acknowledge by SQL, in the transaction of the work.
	counts, err = dml(t.Context(), c, "DELETE FROM Tasks WHERE Id = 2 ASSERT_ROWS_MODIFIED 1", "INSERT INTO Effects (Id, N) VALUES (2, 1)")
	require.NoError(t, err)
	require.Equal(t, []int64{1, 1}, counts)
	_, err = dml(t.Context(), c, "INSERT INTO Effects (Id, N) VALUES (3, 1)", "DELETE FROM Tasks WHERE Id = 2 ASSERT_ROWS_MODIFIED 1")
	require.Equal(t, codes.OutOfRange, spanner.ErrCode(err))
	require.Equal(t, []int64{2}, values[int64](t, c, "SELECT Id FROM Effects"), "nothing of the second was kept")

	// What was sent into the future comes when it is due.
	for _, want := range []struct {
		id  int64
		due time.Time
	}{{3, due}, {4, due.Add(100 * time.Millisecond)}} {
		m := open.next(t)
		require.Equal(t, want.id, m.ID)
		require.True(t, want.due.Equal(m.DeliverTime))
		require.False(t, time.Now().Before(want.due))
		require.Less(t, time.Since(want.due), time.Second)
	}

	// Delete without asserting, by mutation and by SQL.
	apply(t, c, spanner.Delete("Tasks", spanner.Key{3}))
	counts, err = dml(t.Context(), c, "DELETE FROM Tasks WHERE TRUE", "DELETE FROM Tasks WHERE TRUE")
	require.NoError(t, err)
	require.Equal(t, []int64{1, 0}, counts)
	require.NoError(t, updateDDL(t, db, "DROP QUEUE Tasks"))
	require.Equal(t, codes.NotFound, spanner.ErrCode(open.end(t)))
}

// Ack and send of one key in one commit gives another message under the same key; the other order is refused.
func TestQueueResend(t *testing.T) {
	t.Parallel()
	c := emulatortest.Database(t, taskQueue).Client(t)
	open := receiveTasks(t, c, "SELECT * FROM RECEIVE_Tasks(max_duration => '1m')")
	apply(t, c, spanner.Send("Tasks", spanner.Key{1}, "first"))
	first := open.next(t)

	_, err := c.Apply(t.Context(), []*spanner.Mutation{spanner.Send("Tasks", spanner.Key{1}, "x"), spanner.Ack("Tasks", spanner.Key{1})})
	require.Equal(t, codes.InvalidArgument, spanner.ErrCode(err))
	_, err = c.Apply(t.Context(), []*spanner.Mutation{spanner.Send("Tasks", spanner.Key{1}, "x")})
	require.Equal(t, codes.AlreadyExists, spanner.ErrCode(err))

	apply(t, c, spanner.Ack("Tasks", spanner.Key{1}), spanner.Send("Tasks", spanner.Key{1}, "second"))
	second := open.next(t)
	require.Equal(t, "second", second.Payload)
	require.NotEqual(t, first.DeliverTime, second.DeliverTime)

	// By statements, in a transaction that also buffers.
	_, err = c.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		if _, err := tx.Update(ctx, spanner.NewStatement("DELETE FROM Tasks WHERE Id = 1 ASSERT_ROWS_MODIFIED 1")); err != nil {
			return err
		}
		return tx.BufferWrite([]*spanner.Mutation{spanner.Send("Tasks", spanner.Key{1}, "third")})
	})
	require.NoError(t, err)
	require.Equal(t, "third", open.next(t).Payload)
	counts, err := dml(t.Context(), c, "DELETE FROM Tasks WHERE Id = 1 ASSERT_ROWS_MODIFIED 1", "INSERT INTO Tasks (Id, Payload) VALUES (1, 'fourth')")
	require.NoError(t, err)
	require.Equal(t, []int64{1, 1}, counts)
	require.Equal(t, "fourth", open.next(t).Payload)
}

// A send is delivered if its transaction commits, and only then.
func TestQueueSendIsPartOfItsTransaction(t *testing.T) {
	t.Parallel()
	c := emulatortest.Database(t, taskQueue, effectsTable).Client(t)
	open := receiveTasks(t, c, "SELECT * FROM RECEIVE_Tasks(max_duration => '1m')")
	for _, abandon := range []bool{true, false} {
		_, err := c.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			if _, err := tx.Update(ctx, spanner.NewStatement("INSERT INTO Tasks (Id, Payload) VALUES (1, 'by SQL')")); err != nil {
				return err
			}
			if err := tx.BufferWrite([]*spanner.Mutation{spanner.Send("Tasks", spanner.Key{2}, "by mutation"), spanner.Insert("Effects", []string{"Id", "N"}, []any{1, 1})}); err != nil {
				return err
			}
			open.none(t, 50*time.Millisecond)
			if abandon {
				return context.Canceled
			}
			return nil
		})
		if abandon {
			require.Error(t, err)
			open.none(t, 50*time.Millisecond)
		} else {
			require.NoError(t, err)
		}
	}
	require.ElementsMatch(t, []int64{1, 2}, []int64{open.next(t).ID, open.next(t).ID})
}

func TestQueueWritesThatAreRefused(t *testing.T) {
	t.Parallel()
	c := emulatortest.Database(t, taskQueue).Client(t)
	columns, row := []string{"Id", "Payload"}, []any{1, "x"}
	for name, m := range map[string]*spanner.Mutation{
		"insert":           spanner.Insert("Tasks", columns, row),
		"update":           spanner.Update("Tasks", columns, row),
		"insert or update": spanner.InsertOrUpdate("Tasks", columns, row),
		"replace":          spanner.Replace("Tasks", columns, row),
		"ack of no key":    spanner.Ack("Tasks", spanner.Key{}),
		"ack of two keys":  spanner.Ack("Tasks", spanner.Key{1, 2}),
	} {
		_, err := c.Apply(t.Context(), []*spanner.Mutation{m})
		require.Equal(t, codes.InvalidArgument, spanner.ErrCode(err), "%s: %v", name, err)
	}
	apply(t, c, spanner.Send("Tasks", spanner.Key{1}, "x"))
	for _, sql := range []string{"UPDATE Tasks SET Payload = 'y' WHERE Id = 1", "INSERT OR UPDATE INTO Tasks (Id, Payload) VALUES (1, 'y')"} {
		_, err := dml(t.Context(), c, sql)
		require.Equal(t, codes.InvalidArgument, spanner.ErrCode(err), "%s: %v", sql, err)
		_, err = c.PartitionedUpdate(t.Context(), spanner.NewStatement(sql))
		require.Equal(t, codes.InvalidArgument, spanner.ErrCode(err), "%s: %v", sql, err)
		_, err = c.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			_, err := tx.BatchUpdate(ctx, []spanner.Statement{spanner.NewStatement(sql)})
			return err
		})
		require.Equal(t, codes.InvalidArgument, spanner.ErrCode(err), "%s: %v", sql, err)
	}
	require.Equal(t, []string{"x"}, values[string](t, c, "SELECT Payload FROM Tasks"))
}
