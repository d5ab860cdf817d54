package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// odd is a queue whose key has everything that must not be copied blindly into
// a table: NULL parts, a generated and a hidden column, a commit timestamp, a
// descending part, an order of its own, and names the tables want themselves.
func odd() Queue {
	return Queue{
		Name: "Odd",
		KeyColumns: []Column{
			{Name: "Shard", Type: Int64(), NotNull: true, Generated: "MOD(FARM_FINGERPRINT(Reason), 8)", Hidden: true},
			{Name: "Reason", Type: String(36)},
			{Name: "LastAt", Type: Timestamp(), AllowCommitTimestamp: true},
			{Name: "starts", Type: Bytes(16), NotNull: true},
		},
		Payload:    Proto("shop.v1.Order"),
		PrimaryKey: []KeyPart{{Column: "starts"}, {Column: "Shard"}, {Column: "Reason", Desc: true}, {Column: "LastAt"}},
	}
}

func TestAttemptsTable(t *testing.T) {
	t.Parallel()
	require.NoError(t, Attempts{Queue: tasks()}.Validate())
	require.Equal(t, []string{`CREATE TABLE UserTasksAttempts (
  UserId INT64 NOT NULL,
  MessageId STRING(36) NOT NULL,
  DeliverTime TIMESTAMP NOT NULL,
  Starts INT64 NOT NULL,
  Errors INT64 NOT NULL,
  Deferrals INT64 NOT NULL,
  FirstAt TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp = true),
  LastAt TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp = true),
) PRIMARY KEY (UserId, MessageId)`}, Attempts{Queue: tasks()}.Statements())

	a := Attempts{Queue: odd(), RetentionDays: 30}
	require.NoError(t, a.Validate())
	require.Equal(t, "Starts_", a.Columns().Starts)
	require.Equal(t, "LastAt_", a.Columns().LastAt)
	require.Equal(t, []string{`CREATE TABLE OddAttempts (
  Shard INT64 NOT NULL,
  Reason STRING(36),
  LastAt TIMESTAMP,
  starts BYTES(16) NOT NULL,
  DeliverTime TIMESTAMP NOT NULL,
  Starts_ INT64 NOT NULL,
  Errors INT64 NOT NULL,
  Deferrals INT64 NOT NULL,
  FirstAt TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp = true),
  LastAt_ TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp = true),
) PRIMARY KEY (starts, Shard, Reason DESC, LastAt),
ROW DELETION POLICY (OLDER_THAN(LastAt_, INTERVAL 30 DAY))`}, a.Statements())
}

func TestDeadLettersTable(t *testing.T) {
	t.Parallel()
	d := DeadLetters{Queue: odd(), RetentionDays: 90}
	require.NoError(t, d.Validate())
	require.Equal(t, "OddDeadLetters", d.TableName())
	require.Equal(t, DeadLetterColumns{
		DeadAt: "DeadAt", Payload: "Payload", DeliverTime: "DeliverTime", Reason: "Reason_", Error: "Error",
		Attempts: "Attempts", FirstAt: "FirstAt", LastAt: "LastAt_", Handler: "Handler",
	}, d.Columns())
	require.Equal(t, []string{`CREATE TABLE OddDeadLetters (
  Shard INT64 NOT NULL,
  Reason STRING(36),
  LastAt TIMESTAMP,
  starts BYTES(16) NOT NULL,
  DeadAt TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp = true),
  Payload shop.v1.` + "`Order`" + ` NOT NULL,
  DeliverTime TIMESTAMP NOT NULL,
  Reason_ STRING(MAX) NOT NULL,
  Error STRING(MAX),
  Attempts INT64 NOT NULL,
  FirstAt TIMESTAMP OPTIONS (allow_commit_timestamp = true),
  LastAt_ TIMESTAMP OPTIONS (allow_commit_timestamp = true),
  Handler STRING(MAX),
) PRIMARY KEY (starts, Shard, Reason DESC, LastAt, DeadAt),
ROW DELETION POLICY (OLDER_THAN(DeadAt, INTERVAL 90 DAY))`}, d.Statements())
}

// Beside a queue table with priorities the last column keeps them.
func TestDeadLettersOfPriorities(t *testing.T) {
	t.Parallel()
	q := tasks()
	plain := DeadLetters{Queue: q}.Statements()[0]
	for _, n := range []int{0, 1} {
		require.Equal(t, plain, DeadLetters{Queue: q, Priorities: n}.Statements()[0])
		require.Empty(t, DeadLetters{Queue: q, Priorities: n}.Columns().Priority)
	}
	d := DeadLetters{Queue: q, Priorities: 3}
	require.Equal(t, "Priority", d.Columns().Priority)
	require.Equal(t, strings.Replace(plain, "  Handler STRING(MAX),\n", "  Handler STRING(MAX),\n  Priority INT64,\n", 1), d.Statements()[0])
	q.KeyColumns = append(q.KeyColumns, Column{Name: "priority", Type: Int64()})
	require.Equal(t, "Priority_", DeadLetters{Queue: q, Priorities: 3}.Columns().Priority)
}

// The key of a table made from a queue must not share memory with the queue's.
func TestQueueTablesLeaveTheQueueAlone(t *testing.T) {
	t.Parallel()
	q := odd()
	q.PrimaryKey = append(make([]KeyPart, 0, 10), q.PrimaryKey...) // room to be written into
	q.KeyColumns = append(make([]Column, 0, 20), q.KeyColumns...)
	first := DeadLetters{Queue: q}.Statements()
	_ = Attempts{Queue: q}.Statements()
	_ = queueShape(q)
	require.Equal(t, odd(), q)
	require.Equal(t, KeyPart{}, q.PrimaryKey[:5][4])
	require.Equal(t, Column{}, q.KeyColumns[:5][4])
	require.Equal(t, first, DeadLetters{Queue: q}.Statements())
}

func TestQueueTablesAreValidated(t *testing.T) {
	t.Parallel()
	long := tasks()
	long.Name = "Q" + strings.Repeat("q", 120)
	full := Queue{Name: "Full", Payload: JSON()}
	for i := range 16 {
		full.KeyColumns = append(full.KeyColumns, Column{Name: fmt.Sprintf("K%d", i), Type: Int64()})
	}
	for _, c := range []struct {
		e     Element
		field string
	}{
		{Attempts{}, "Name"},
		{Attempts{Queue: long}, "Queue.Name"},
		{Attempts{Queue: tasks(), RetentionDays: -1}, "RetentionDays"},
		{DeadLetters{Queue: long}, "Queue.Name"},
		{DeadLetters{Queue: full}, "Queue.KeyColumns"},
		{DeadLetters{Queue: tasks(), Priorities: -1}, "Priorities"},
		{DeadLetters{Queue: tasks(), Priorities: MaxPriorities + 1}, "Priorities"},
	} {
		var field *FieldError
		require.ErrorAs(t, c.e.Validate(), &field, "%#v", c.e)
		require.Equal(t, c.field, field.Field)
	}
	require.NoError(t, Attempts{Queue: full}.Validate())
}
