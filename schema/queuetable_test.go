package schema

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestQueueTable(t *testing.T) {
	t.Parallel()
	plain := QueueTable{Queue: tasks()}
	require.NoError(t, plain.Validate())
	require.Equal(t, []string{`CREATE TABLE UserTasks (
  UserId INT64 NOT NULL,
  MessageId STRING(36) NOT NULL,
  Payload BYTES(MAX) NOT NULL,
  DueTime TIMESTAMP NOT NULL DEFAULT (CURRENT_TIMESTAMP()),
  VisibleAt TIMESTAMP NOT NULL DEFAULT (CURRENT_TIMESTAMP()),
  LeaseToken STRING(36),
  Attempts INT64 NOT NULL DEFAULT (0),
  Errors INT64 NOT NULL DEFAULT (0),
  Deferrals INT64 NOT NULL DEFAULT (0),
  FirstAt TIMESTAMP OPTIONS (allow_commit_timestamp = true),
  SentAt TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp = true),
  Priority INT64 NOT NULL DEFAULT (0),
) PRIMARY KEY (UserId, MessageId)`,
		`CREATE INDEX UserTasksByVisibleAt ON UserTasks (Priority, VisibleAt)`,
	}, plain.Statements())

	q := odd()
	q.Interleave = Interleave{Table: "Starts", InParent: true, OnDelete: Cascade}
	q.RowDeletion = RowDeletion{Column: DeliverTimeColumn, Days: 7}
	full := QueueTable{Queue: q, Shards: 16, Priorities: 3}
	require.NoError(t, full.Validate())
	require.Equal(t, "Shard_", full.Columns().Shard, "the key has a Shard of its own")
	statements := full.Statements()
	require.Contains(t, statements[0], "Priority INT64 NOT NULL DEFAULT (MOD(0, 3)),\n")
	require.Contains(t, statements[0], "Shard_ INT64 NOT NULL DEFAULT (ABS(MOD(FARM_FINGERPRINT(GENERATE_UUID()), 16))),\n")
	require.True(t, strings.HasSuffix(statements[0], `,
INTERLEAVE IN PARENT Starts ON DELETE CASCADE,
ROW DELETION POLICY (OLDER_THAN(DueTime, INTERVAL 7 DAY))`), statements[0])
	require.Equal(t, "CREATE INDEX OddByVisibleAt ON Odd (Shard_, Priority, VisibleAt)", statements[1])
	require.Len(t, statements, 2)

	full.OrderColumns = 3
	require.NoError(t, full.Validate())
	require.Equal(t, "CREATE INDEX OddInOrder ON Odd (starts, Shard, Reason, LeaseToken DESC, DueTime)", full.Statements()[2])
}

func TestQueueTableIsValidated(t *testing.T) {
	t.Parallel()
	withOptions := tasks()
	withOptions.Options.DisableSend = true
	long := tasks()
	long.Name = strings.Repeat("q", 120)
	for _, c := range []struct {
		table QueueTable
		field string
	}{
		{QueueTable{}, "Name"},
		{QueueTable{Queue: withOptions}, "Queue.Options"},
		{QueueTable{Queue: long}, "Queue.Name"},
		{QueueTable{Queue: tasks(), Shards: 65}, "Shards"},
		{QueueTable{Queue: tasks(), Shards: -1}, "Shards"},
		{QueueTable{Queue: tasks(), Priorities: 9}, "Priorities"},
		{QueueTable{Queue: tasks(), Priorities: -1}, "Priorities"},
		{QueueTable{Queue: tasks(), OrderColumns: -1}, "OrderColumns"},
		{QueueTable{Queue: tasks(), OrderColumns: 2}, "OrderColumns"},
	} {
		var field *FieldError
		require.ErrorAs(t, c.table.Validate(), &field, "%#v", c.table)
		require.Equal(t, c.field, field.Field)
	}
}

// The DDL of any queue table is read back as that table, and is the shape that
// Apply looks for.
func TestQueueTableIsReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		table := QueueTable{
			Queue:      drawQueue(t),
			Shards:     rapid.SampledFrom([]int{0, 1, 2, 16, 64}).Draw(t, "shards"),
			Priorities: rapid.IntRange(0, MaxPriorities).Draw(t, "priorities"),
		}
		table.Queue.Options = QueueOptions{ReceiveMode: table.Queue.Options.ReceiveMode}
		for i := range table.Queue.KeyColumns {
			c := &table.Queue.KeyColumns[i]
			if c.Generated != "" {
				c.Generated = rapid.SampledFrom([]string{"1", "MOD(FARM_FINGERPRINT(Id), 8)", "((a) + (b))"}).Draw(t, "expression")
			}
		}
		table.OrderColumns = rapid.IntRange(0, len(table.Queue.KeyColumns)-1).Draw(t, "order")
		require.NoError(t, table.Validate())
		got, err := ParseQueueTable(table.Statements()[0], table.Statements()[1:]...)
		require.NoError(t, err, table.Statements()[0])
		want := table
		want.Queue.PrimaryKey, want.Queue.Options = table.Queue.KeyParts(), QueueOptions{}
		if want.Shards == 1 {
			want.Shards = 0
		}
		if want.Priorities == 1 {
			want.Priorities = 0
		}
		require.Equal(t, want, got)
		require.Equal(t, table.Statements(), got.Statements())
		for _, sql := range table.Statements() {
			_, err := wantedObject(sql)
			require.NoError(t, err, sql)
		}
	})
}

func TestTablesThatAreNoQueueTables(t *testing.T) {
	t.Parallel()
	good := QueueTable{Queue: tasks(), Shards: 4, Priorities: 2}.Statements()[0]
	_, err := ParseQueueTable(good)
	require.NoError(t, err)
	for _, c := range []struct{ old, new, says string }{
		{"Payload BYTES(MAX) NOT NULL,", "", "no column Payload"},
		{"VisibleAt", "Visible", "no column VisibleAt"},
		{"LeaseToken STRING(36)", "LeaseToken STRING(10)", "want LeaseToken STRING(36), found LeaseToken STRING(10)"},
		{"DueTime TIMESTAMP NOT NULL", "DueTime TIMESTAMP", "want DueTime TIMESTAMP NOT NULL, found DueTime TIMESTAMP"},
		{"DEFAULT (MOD(0, 2))", "DEFAULT (1)", "want DEFAULT (MOD(0, 8)), with the right number, found DEFAULT (1)"},
		{"DEFAULT (MOD(0, 2))", "", "found DEFAULT ()"},
		{", 4)", ", 65)", "Shards \"65\": must be 0 to 64"},
		{"CREATE TABLE UserTasks", "CREATE TABLE", "queue table"},
	} {
		broken := strings.Replace(good, c.old, c.new, 1)
		require.NotEqual(t, good, broken)
		_, err := ParseQueueTable(broken)
		require.ErrorContains(t, err, c.says)
	}
	for _, sql := range []string{tasks().DDL(), "CREATE INDEX I ON T (A)", ""} {
		_, err := ParseQueueTable(sql)
		require.Error(t, err)
	}
	for _, index := range []string{
		"CREATE INDEX UserTasksInOrder ON UserTasks (DueTime)",
		"CREATE INDEX UserTasksInOrder ON UserTasks (UserId, LeaseToken, DueTime)",
		"CREATE INDEX UserTasksInOrder ON UserTasks (MessageId, LeaseToken DESC, DueTime)",
		"CREATE INDEX UserTasksInOrder ON UserTasks (UserId, MessageId, LeaseToken DESC, DueTime)",
		"CREATE INDEX UserTasksInOrder ON",
	} {
		_, err := ParseQueueTable(good, index)
		require.Error(t, err, index)
	}
	other, err := ParseQueueTable(good, "CREATE INDEX Another ON UserTasks (DueTime)")
	require.NoError(t, err)
	require.Zero(t, other.OrderColumns)

	// Case and layout are no difference.
	_, err = ParseQueueTable(strings.ToLower(strings.ReplaceAll(good, "\n", " ")))
	require.NoError(t, err)
}
