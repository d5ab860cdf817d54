package schema

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseAlterAndDrop(t *testing.T) {
	t.Parallel()
	pull, no, yes, cold, none := "PULL", false, true, "cold", ""
	for sql, want := range map[string]Statement{
		"DROP QUEUE Q":                          &DropQueue{Name: "Q"},
		"drop queue if exists `Order`;":         &DropQueue{Name: "Order", IfExists: true},
		"ALTER QUEUE Q SET ON DELETE CASCADE":   &AlterQueue{Name: "Q", Change: SetOnDelete{Cascade}},
		"alter queue q set on delete no action": &AlterQueue{Name: "q", Change: SetOnDelete{NoAction}},
		"ALTER QUEUE Q SET OPTIONS (disable_send = TRUE, disable_delivery=false, receive_mode=\"PULL\", locality_group='cold')": &AlterQueue{
			Name: "Q", Change: SetOptions{ReceiveMode: &pull, DisableSend: &yes, DisableDelivery: &no, LocalityGroup: &cold}},
		"ALTER QUEUE Q SET OPTIONS (locality_group = null, disable_send = NULL)": &AlterQueue{
			Name: "Q", Change: SetOptions{DisableSend: &no, LocalityGroup: &none}},
		"ALTER QUEUE Q SET INTERLEAVE IN T":                            &AlterQueue{Name: "Q", Change: SetInterleave{Interleave{Table: "T"}}},
		"ALTER QUEUE Q SET INTERLEAVE IN PARENT T":                     &AlterQueue{Name: "Q", Change: SetInterleave{Interleave{Table: "T", InParent: true}}},
		"ALTER QUEUE Q SET INTERLEAVE IN PARENT T ON DELETE CASCADE":   &AlterQueue{Name: "Q", Change: SetInterleave{Interleave{Table: "T", InParent: true, OnDelete: Cascade}}},
		"ALTER QUEUE Q SET INTERLEAVE IN `Parent` ON DELETE NO ACTION": &AlterQueue{Name: "Q", Change: SetInterleave{Interleave{Table: "Parent"}}},
		"ALTER QUEUE Q ADD ROW DELETION POLICY (OLDER_THAN(DeliverTime, INTERVAL 3 DAY))": &AlterQueue{
			Name: "Q", Change: AddRowDeletion{RowDeletion{Column: "DeliverTime", Days: 3}}},
		"alter queue Q replace row deletion policy (older_than(`SentAt`, interval 010 day));": &AlterQueue{
			Name: "Q", Change: ReplaceRowDeletion{RowDeletion{Column: "SentAt", Days: 10}}},
		"ALTER QUEUE Q DROP ROW DELETION POLICY": &AlterQueue{Name: "Q", Change: DropRowDeletion{}},
	} {
		t.Run(sql, func(t *testing.T) {
			t.Parallel()
			st, err := ParseStatement(sql)
			require.NoError(t, err)
			require.Equal(t, want, st)
		})
	}
}

// What does not concern queues is handed back untouched, readable or not.
func TestOtherStatementsAreNeverAnError(t *testing.T) {
	t.Parallel()
	for _, sql := range []string{
		"",
		";",
		"QUEUE",
		"CREATE",
		"CREATE TABLE Queue (Id INT64) PRIMARY KEY (Id)",
		"CREATE TABLE T (Id INT64 DEFAULT ('CREATE QUEUE Q')) PRIMARY KEY (Id)",
		"/* CREATE QUEUE Q (Payload JSON NOT NULL) */ DROP TABLE T",
		"-- CREATE QUEUE Q\nDROP TABLE Q",
		"'CREATE' QUEUE Q",
		"'CREATE QUEUE Q'",
		"`CREATE` QUEUE Q",
		"CREATE `QUEUE` Q",
		"CREATE 'QUEUE' Q",
		"CREATE OR REPLACE QUEUE Q (Payload JSON NOT NULL)",
		"GRANT SELECT ON QUEUE Q TO ROLE R",
		"SELECT 'unclosed",
		"'unclosed",
		"/* unclosed CREATE QUEUE Q",
		"CREATE TABLE T (Id STRING(MAX) DEFAULT ('unclosed",
		"\x00\xff",
		"INSERT INTO Queue (Id) VALUES (1)",
	} {
		st, err := ParseStatement(sql)
		require.NoError(t, err, sql)
		require.Equal(t, &Other{SQL: sql}, st)
	}
}

func TestWordsInStringsAndCommentsChangeNothing(t *testing.T) {
	t.Parallel()
	st, err := ParseStatement(`CREATE QUEUE UserTasks ( -- DeliverTime TIMESTAMP, DROP QUEUE UserTasks;
		UserId INT64 NOT NULL, /* Payload JSON, ) PRIMARY KEY (x) */
		MessageId STRING(36) NOT NULL AS (CONCAT('); DROP QUEUE "UserTasks" -- ', "/* NOT NULL */", CAST(UserId AS STRING))) STORED,
		Payload BYTES(MAX) NOT NULL # NULL
	) PRIMARY KEY (UserId, MessageId), OPTIONS (receive_mode = 'PULL', locality_group = 'disable_send = true') -- ; end`)
	require.NoError(t, err)
	want := tasks()
	want.KeyColumns[1].Generated = `CONCAT('); DROP QUEUE "UserTasks" -- ', "/* NOT NULL */", CAST(UserId AS STRING))`
	want.Options.LocalityGroup = "disable_send = true"
	require.Equal(t, &CreateQueue{Queue: want}, st)
}

func TestExpressionKeepsItsTextButNotTheCommentsAroundIt(t *testing.T) {
	t.Parallel()
	st, err := ParseStatement("CREATE QUEUE Q (Id INT64, Shard INT64 AS ( -- shard\n MOD( Id,\n\t8 ) /* of eight */ + 0 -- end\n) STORED, Payload JSON NOT NULL) PRIMARY KEY (Shard, Id)")
	require.NoError(t, err)
	q := st.(*CreateQueue).Queue
	require.Equal(t, "MOD( Id,\n\t8 ) /* of eight */ + 0", q.KeyColumns[1].Generated)
	again, err := ParseStatement(q.DDL())
	require.NoError(t, err)
	require.Equal(t, st, again)
}
