package schema

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const usersTable = SQL("CREATE TABLE Users (UserId INT64 NOT NULL) PRIMARY KEY (UserId)")

// interleaved is tasks below a parent table.
func interleaved() Queue {
	q := tasks()
	q.Interleave = Interleave{Table: "users", InParent: true, OnDelete: Cascade}
	return q
}

func TestPlanPutsObjectsAfterWhatTheyNeed(t *testing.T) {
	t.Parallel()
	p, err := planFor([]Element{
		DeadLetters{Queue: interleaved()},
		SQL("CREATE INDEX ByName ON Names (Name); CREATE TABLE Names (Id INT64, Name STRING(MAX), CONSTRAINT Fk FOREIGN KEY (Id) REFERENCES USERS (UserId)) PRIMARY KEY (Id)"),
		interleaved(),
		usersTable,
	})
	require.NoError(t, err)
	require.Equal(t, []string{"UserTasksDeadLetters", "Users", "Names", "ByName", "UserTasks"}, p.names())
}

func TestPlanRefuses(t *testing.T) {
	t.Parallel()
	other := tasks()
	other.Payload = JSON()
	for _, c := range []struct {
		elements []Element
		says     string
	}{
		{[]Element{tasks(), other}, "wanted twice, in two shapes: column payload: want BYTES(MAX) NOT NULL, found JSON NOT NULL"},
		{[]Element{tasks(), SQL("CREATE TABLE usertasks (Id INT64) PRIMARY KEY (Id)")}, "want a QUEUE, found a TABLE"},
		{[]Element{tasks(), Queue{}}, "element 1 (schema.Queue)"},
		{[]Element{nil}, "element 0 is nil"},
		{[]Element{SQL("")}, "there is no statement"},
		{[]Element{SQL("DROP TABLE T")}, `found "DROP TABLE T"`},
		{[]Element{SQL("CREATE VIEW V SQL SECURITY INVOKER AS SELECT 1 AS x")}, "VIEW V cannot be compared"},
		{[]Element{SQL("CREATE TABLE T (Id INT64 PRIMARY KEY")}, "TABLE T cannot be read"},
		{[]Element{SQL("CREATE TABLE T (Id STRING(3) DEFAULT ('x")}, "SQL: "},
		{[]Element{SQL("CREATE OR REPLACE QUEUE Q (Id INT64, Payload JSON NOT NULL) PRIMARY KEY (Id)")}, "expected CREATE QUEUE"},
		{[]Element{SQL("CREATE QUEUE Q (Id INT64) PRIMARY KEY (Id)")}, "no Payload column"},
		{[]Element{SQL("CREATE TABLE T (Id INT64, ID STRING(3)) PRIMARY KEY (Id)")}, "TABLE T contradicts itself: column id"},
		{[]Element{SQL("CREATE TABLE A (Id INT64) PRIMARY KEY (Id), INTERLEAVE IN PARENT B; CREATE TABLE B (Id INT64) PRIMARY KEY (Id), INTERLEAVE IN PARENT A")}, "needs itself"},
	} {
		_, err := planFor(c.elements)
		require.ErrorContains(t, err, c.says)
	}
}

func TestPlanWantsTheSameObjectOnce(t *testing.T) {
	t.Parallel()
	p, err := planFor([]Element{tasks(), SQL(tasks().DDL() + ";;\n"), usersTable, usersTable})
	require.NoError(t, err)
	require.Equal(t, []string{"UserTasks", "Users"}, p.names())
}

// Layout, case, comments, the emulator's own way to write things, and what an
// operator switches on a living queue are not differences.
func TestCompareFindsTheSameShape(t *testing.T) {
	t.Parallel()
	generated := tasks()
	generated.KeyColumns[0].Generated = "MOD(FARM_FINGERPRINT(MessageId), 8)"
	policy := tasks()
	policy.RowDeletion = RowDeletion{Column: DeliverTimeColumn, Days: 7}
	for name, c := range map[string]struct {
		want  Element
		found []string
	}{
		"as written": {tasks(), tasks().Statements()},
		"queue in another layout": {generated, []string{"create queue IF NOT EXISTS `usertasks` (PAYLOAD bytes(max) not null, messageid string(36) not null, " +
			"userid int64 not null as ( mod ( FARM_FINGERPRINT(MessageId),\n8) ) stored) primary key (userid asc, messageid)"}},
		"options of the operator": {tasks(), []string{"CREATE QUEUE UserTasks (UserId INT64 NOT NULL, MessageId STRING(36) NOT NULL, Payload BYTES(MAX) NOT NULL) " +
			"PRIMARY KEY (UserId, MessageId), OPTIONS (disable_send = true, disable_delivery = true, locality_group = 'cold')"}},
		"policy": {policy, []string{"CREATE QUEUE UserTasks (UserId INT64 NOT NULL, MessageId STRING(36) NOT NULL, Payload BYTES(MAX) NOT NULL) " +
			"PRIMARY KEY (UserId, MessageId), ROW DELETION POLICY (OLDER_THAN(delivertime, INTERVAL 7 DAY))"}},
		"table as the emulator shows it": {Attempts{Queue: odd(), RetentionDays: 7}, []string{`CREATE TABLE OddAttempts (
  Shard INT64 NOT NULL,
  Reason STRING(36),
  LastAt TIMESTAMP,
  starts BYTES(16) NOT NULL,
  DeliverTime TIMESTAMP NOT NULL,
  Starts_ INT64 NOT NULL,
  Errors INT64 NOT NULL,
  Deferrals INT64 NOT NULL,
  FirstAt TIMESTAMP NOT NULL OPTIONS (
    allow_commit_timestamp = true
  ),
  LastAt_ TIMESTAMP NOT NULL OPTIONS (
    allow_commit_timestamp = true
  ),
) PRIMARY KEY(starts, Shard, Reason DESC, LastAt), ROW DELETION POLICY (OLDER_THAN(LastAt_, INTERVAL 7 DAY))`}},
		"proto type": {DeadLetters{Queue: odd()}, []string{"CREATE TABLE OddDeadLetters (Shard INT64 NOT NULL, Reason STRING(36), LastAt TIMESTAMP, starts BYTES(16) NOT NULL, " +
			"DeadAt TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp=true), Payload `shop.v1.Order` NOT NULL, DeliverTime TIMESTAMP NOT NULL, Reason_ STRING(MAX) NOT NULL, " +
			"Error STRING(MAX), Attempts INT64 NOT NULL, FirstAt TIMESTAMP OPTIONS (allow_commit_timestamp=true), LastAt_ TIMESTAMP OPTIONS (allow_commit_timestamp=true), " +
			"Handler STRING(MAX)) PRIMARY KEY (starts, Shard, Reason DESC, LastAt, DeadAt)",
			"CREATE INDEX Mine ON OddDeadLetters (Handler)"}},
		"application tables": {
			SQL("CREATE TABLE T (Id INT64 NOT NULL PRIMARY KEY, N INT64 DEFAULT (1 + 1), At_ TIMESTAMP OPTIONS (allow_commit_timestamp = false)); CREATE UNIQUE INDEX I ON T (N DESC) STORING (At_)"),
			[]string{"CREATE TABLE t (\n  id INT64 NOT NULL,\n  n INT64 DEFAULT (1   + 1) HIDDEN,\n  at_ TIMESTAMP,\n) PRIMARY KEY(id ASC)", "create unique index i on t(n desc) storing (AT_)"}},
		"among others": {usersTable, []string{
			"CREATE SEQUENCE S OPTIONS (sequence_kind = 'bit_reversed_positive')", "nobody can read this", "", "CREATE", "CREATE TABLE",
			"CREATE CHANGE STREAM All_ FOR ALL", "CREATE ROLE Users2", "CREATE LOCALITY GROUP Users OPTIONS (x = 1)", "CREATE TABLE S.Users (Id INT64) PRIMARY KEY (Id)",
			"CREATE TABLE `Users` (`UserId` INT64 NOT NULL) PRIMARY KEY (`UserId`)", "CREATE VIEW V SQL SECURITY INVOKER AS SELECT 1 AS Users",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := planFor([]Element{c.want})
			require.NoError(t, err)
			missing, res, err := p.compare(c.found)
			require.NoError(t, err)
			require.Empty(t, missing)
			require.Equal(t, p.names(), res.Present)
		})
	}
}

func TestCompareFindsEachDifference(t *testing.T) {
	t.Parallel()
	const head = "CREATE QUEUE UserTasks (UserId INT64 NOT NULL, MessageId STRING(36) NOT NULL, Payload BYTES(MAX) NOT NULL) PRIMARY KEY (UserId, MessageId)"
	strict := tasks()
	strict.Options = QueueOptions{DisableSend: true, LocalityGroup: "cold"}
	generated := tasks()
	generated.KeyColumns[0].Generated = "a + 'b c'"
	for name, c := range map[string]struct {
		want  Element
		found string
		lines []string
	}{
		"payload":         {tasks(), "CREATE QUEUE UserTasks (UserId INT64 NOT NULL, MessageId STRING(36) NOT NULL, Payload STRING(MAX) NOT NULL HIDDEN) PRIMARY KEY (UserId, MessageId)", []string{"column payload: want BYTES(MAX) NOT NULL, found STRING(MAX) NOT NULL HIDDEN"}},
		"null key":        {tasks(), "CREATE QUEUE UserTasks (UserId INT64, MessageId STRING(36) NOT NULL, Payload BYTES(MAX) NOT NULL) PRIMARY KEY (UserId, MessageId)", []string{"column userid: want INT64 NOT NULL, found INT64"}},
		"key order":       {tasks(), "CREATE QUEUE UserTasks (UserId INT64 NOT NULL, MessageId STRING(36) NOT NULL, Payload BYTES(MAX) NOT NULL) PRIMARY KEY (MessageId, UserId DESC)", []string{"primary key: want (userid, messageid), found (messageid, userid DESC)"}},
		"columns":         {tasks(), "CREATE QUEUE UserTasks (Id INT64, MessageId STRING(36) NOT NULL, Payload BYTES(MAX) NOT NULL) PRIMARY KEY (Id, MessageId)", []string{"column userid: want INT64 NOT NULL, found none", "primary key: want (userid, messageid), found (id, messageid)", "column id: want none, found INT64"}},
		"expression":      {generated, "CREATE QUEUE UserTasks (UserId INT64 NOT NULL AS (a + 'b  c') STORED, MessageId STRING(36) NOT NULL, Payload BYTES(MAX) NOT NULL) PRIMARY KEY (UserId, MessageId)", []string{`column userid: want INT64 NOT NULL AS (a + "b c") STORED, found INT64 NOT NULL AS (a + "b  c") STORED`}},
		"interleave":      {interleaved(), head + ", INTERLEAVE IN PARENT Users", []string{"interleave: want INTERLEAVE IN PARENT users ON DELETE CASCADE, found INTERLEAVE IN PARENT users"}},
		"interleave more": {tasks(), head + ", INTERLEAVE IN Users", []string{"interleave: want none, found INTERLEAVE IN users"}},
		"policy":          {tasks(), head + ", ROW DELETION POLICY (OLDER_THAN(DeliverTime, INTERVAL 1 DAY))", []string{"row deletion policy: want none, found OLDER_THAN(delivertime, INTERVAL 1 DAY)"}},
		"options":         {strict, head + ", OPTIONS (locality_group = 'hot')", []string{"option disable_send: want true, found none", `option locality_group: want "cold", found "hot"`}},
		"kind":            {tasks(), "CREATE TABLE UserTasks (Id INT64) PRIMARY KEY (Id)", []string{"want a QUEUE, found a TABLE"}},
		"unreadable":      {usersTable, "CREATE TABLE Users (UserId SOMETHING NEW) PRIMARY KEY (UserId)", nil},
		"table column":    {usersTable, "CREATE TABLE Users (UserId INT64 NOT NULL DEFAULT (1), Name STRING(MAX)) PRIMARY KEY (UserId)", []string{"column userid: want INT64 NOT NULL, found INT64 NOT NULL DEFAULT ( 1 )", "column name: want none, found STRING(MAX)"}},
		"table rest": {usersTable, "CREATE TABLE Users (UserId INT64 NOT NULL, CONSTRAINT C CHECK (UserId > 0), CHECK (UserId < 9)) PRIMARY KEY (UserId DESC), INTERLEAVE IN PARENT P ON DELETE CASCADE", []string{
			"primary key: want (userid), found (userid DESC)", "constraint c: want none, found CHECK (UserId > 0)", "constraint CHECK (UserId < 9): want none, found CHECK (UserId < 9)",
			"interleave: want none, found INTERLEAVE IN PARENT p ON DELETE CASCADE"}},
		"index": {SQL("CREATE INDEX I ON T (A)"), "CREATE UNIQUE NULL_FILTERED INDEX I ON U (A, B DESC) STORING (C)", []string{
			"table: want t, found u", "keys: want a, found a, b DESC", "unique: want none, found UNIQUE", "null-filtered: want none, found NULL_FILTERED", "storing: want none, found c"}},
		"commit timestamp": {Attempts{Queue: tasks()}, "CREATE TABLE UserTasksAttempts (UserId INT64 NOT NULL, MessageId STRING(36) NOT NULL, DeliverTime TIMESTAMP NOT NULL, Starts INT64 NOT NULL, " +
			"Errors INT64 NOT NULL, Deferrals INT64 NOT NULL, FirstAt TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp=true), LastAt TIMESTAMP NOT NULL) PRIMARY KEY (UserId, MessageId)",
			[]string{"column lastat: want TIMESTAMP NOT NULL option allow_commit_timestamp = true, found TIMESTAMP NOT NULL"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := planFor([]Element{c.want})
			require.NoError(t, err)
			missing, res, err := p.compare([]string{c.found})
			require.ErrorIs(t, err, ErrShape)
			require.Empty(t, missing)
			require.Empty(t, res)
			var shape *ShapeError
			require.ErrorAs(t, err, &shape)
			require.Equal(t, c.found, shape.Found)
			require.Equal(t, p[0].sql, shape.Want)
			require.Contains(t, err.Error(), shape.Want)
			require.Contains(t, err.Error(), shape.Found)
			if c.lines == nil {
				require.Len(t, shape.Differences, 1)
				require.Contains(t, shape.Differences[0], "cannot be read")
				return
			}
			require.Equal(t, c.lines, shape.Differences)
			require.Contains(t, err.Error(), shape.Differences[0])
		})
	}
}
