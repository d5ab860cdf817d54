package schema_test

import (
	"testing"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/schema"
)

// The emulator takes a queue table, Apply knows it again, and what the database
// shows of it is read back as the definition.
func TestApplyMakesAQueueTable(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t)
	client, sent := admin(t, db.Endpoint())
	q := nullable()
	q.Interleave = schema.Interleave{Table: "Users", InParent: true, OnDelete: schema.Cascade}
	q.RowDeletion = schema.RowDeletion{Column: schema.DeliverTimeColumn, Days: 3}
	table := schema.QueueTable{Queue: q, Shards: 8, Priorities: 3}

	res, err := schema.Apply(t.Context(), client, db.Name, table, schema.DeadLetters{Queue: q, Priorities: 3}, users)
	require.NoError(t, err)
	require.Equal(t, []string{"Users", "Reminders", "RemindersByVisibleAt", "RemindersDeadLetters"}, res.Created)
	res, err = schema.Apply(t.Context(), client, db.Name, table, schema.DeadLetters{Queue: q, Priorities: 3}, users)
	require.NoError(t, err)
	require.Len(t, res.Present, 4)
	require.EqualValues(t, 1, sent.Load(), "the second time nothing may be sent")

	other := table
	other.Shards = 4
	_, err = schema.Apply(t.Context(), client, db.Name, other)
	require.ErrorIs(t, err, schema.ErrShape, "a table with another number of shards is another table")

	shown, err := client.GetDatabaseDdl(t.Context(), &databasepb.GetDatabaseDdlRequest{Database: db.Name})
	require.NoError(t, err)
	found := schema.QueueTable{}
	for _, sql := range shown.Statements {
		if got, err := schema.ParseQueueTable(sql); err == nil {
			found = got
		}
	}
	want := table
	want.Queue.PrimaryKey = q.KeyParts()
	require.Equal(t, want, found)

	// An insert that is not the library's gives what has no default.
	data := db.Client(t)
	_, err = data.Apply(t.Context(), []*spanner.Mutation{spanner.Insert("Users", []string{"UserId"}, []any{1})})
	require.NoError(t, err)
	_, err = data.Apply(t.Context(), []*spanner.Mutation{spanner.InsertMap("Reminders", map[string]any{
		"UserId": 1, "Payload": []byte("x"), table.Columns().SentAt: spanner.CommitTimestamp,
	})})
	require.NoError(t, err)
	row, err := data.Single().ReadRow(t.Context(), "Reminders", spanner.Key{1, spanner.NullString{}}, []string{"Priority", "Shard"})
	require.NoError(t, err)
	var priority, shard int64
	require.NoError(t, row.Columns(&priority, &shard))
	require.Zero(t, priority)
	require.Less(t, shard, int64(8))
	require.GreaterOrEqual(t, shard, int64(0))
}
