package front_test

import (
	"fmt"
	"testing"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
)

// F33: every way to write a statement that changes a queue or a role does the same.
func TestF33WaysToWriteChanges(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		forms []string
		shown []string
	}{
		"options": {[]string{
			"ALTER QUEUE Tasks SET OPTIONS (disable_send = true, receive_mode = 'PULL')",
			"alter queue tasks set options (DISABLE_SEND=TRUE,Receive_Mode=\"PULL\");",
			"-- 'c\nAlter /* QUEUE */ Queue `Tasks`\nSet Options\n(receive_mode = '''PULL''', disable_send = True) # c",
		}, []string{"CREATE QUEUE Tasks (\n  Id INT64 NOT NULL,\n  Payload STRING(MAX) NOT NULL\n) PRIMARY KEY (Id),\nOPTIONS (receive_mode = \"PULL\", disable_send = true)"}},
		"policy": {[]string{
			"ALTER QUEUE Tasks ADD ROW DELETION POLICY (OLDER_THAN(DeliverTime, INTERVAL 7 DAY))",
			"alter queue TASKS add row deletion policy(older_than(`delivertime`,interval 7 day)) ;",
		}, []string{"CREATE QUEUE Tasks (\n  Id INT64 NOT NULL,\n  Payload STRING(MAX) NOT NULL\n) PRIMARY KEY (Id),\nROW DELETION POLICY (OLDER_THAN(DeliverTime, INTERVAL 7 DAY))"}},
		"drop": {[]string{"DROP QUEUE Tasks", "drop queue `tasks`;", "/* x */ Drop Queue If Exists TASKS -- c"}, nil},
	} {
		for i, form := range test.forms {
			db := emulatortest.Database(t, taskQueue)
			require.NoError(t, updateDDL(t, db, form), form)
			require.ElementsMatch(t, test.shown, describe(t, db), "%s, form %d", name, i)
		}
	}
	grants := []string{"CREATE ROLE a", "GRANT SELECT ON QUEUE Tasks TO ROLE a", "GRANT DELETE ON QUEUE Tasks TO ROLE a", "GRANT EXECUTE ON TABLE FUNCTION RECEIVE_Tasks TO ROLE a"}
	for _, forms := range [][]string{
		{"CREATE ROLE a", "GRANT SELECT, DELETE ON QUEUE Tasks TO ROLE a", "GRANT EXECUTE ON TABLE FUNCTION RECEIVE_Tasks TO ROLE a"},
		{"create role if not exists `a`;", "grant select,delete on queue `Tasks` to role A ;", "-- c\nGrant Execute On Table Function `RECEIVE_Tasks` To Role `a`"},
		{"CREATE ROLE a", "CREATE ROLE IF NOT EXISTS A", "GRANT SELECT ON QUEUE Tasks TO ROLE a", "GRANT SELECT, INSERT, DELETE ON QUEUE Tasks TO ROLE a",
			"REVOKE /* GRANT */ INSERT ON QUEUE tasks FROM ROLE a", "GRANT EXECUTE ON TABLE FUNCTION RECEIVE_Tasks, RENEWLEASE_Tasks TO ROLE a", "revoke execute on table function renewlease_tasks from role A"},
	} {
		db := emulatortest.Database(t, taskQueue)
		require.NoError(t, updateDDL(t, db, forms...))
		require.Equal(t, grants, describe(t, db)[1:])
	}
}

// F32 and F33: whatever a queue goes through, an open stream delivers what comes after, and one that is gone ends.
func TestF32StreamsThroughChanges(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, taskQueue)
	c := db.Client(t)
	open := receiveTasks(t, c, "SELECT * FROM RECEIVE_Tasks(max_duration => '1m')")
	for i, change := range []string{
		"ALTER QUEUE Tasks ADD ROW DELETION POLICY (OLDER_THAN(DeliverTime, INTERVAL 7 DAY))",
		"ALTER QUEUE Tasks REPLACE ROW DELETION POLICY (OLDER_THAN(DeliverTime, INTERVAL 8 DAY))",
		"ALTER QUEUE Tasks DROP ROW DELETION POLICY",
		"ALTER QUEUE Tasks SET OPTIONS (receive_mode = 'PULL')",
		"CREATE ROLE a",
		"GRANT SELECT ON QUEUE Tasks TO ROLE a",
		"REVOKE SELECT ON QUEUE Tasks FROM ROLE a",
		"CREATE TABLE Other (Id INT64) PRIMARY KEY (Id)",
		"CREATE QUEUE Another (Id INT64, Payload JSON NOT NULL) PRIMARY KEY (Id)",
		"DROP QUEUE Another",
	} {
		require.NoError(t, updateDDL(t, db, change), change)
		apply(t, c, spanner.Send("Tasks", spanner.Key{i}, change))
		require.EqualValues(t, i, open.next(t).ID, change)
	}
	// Dropped, and made again: the first stream ends, and there is nothing of the first queue in the second.
	require.NoError(t, updateDDL(t, db, "DROP QUEUE IF EXISTS Tasks"))
	require.Equal(t, codes.NotFound, spanner.ErrCode(open.end(t)))
	for round := range 3 {
		require.NoError(t, updateDDL(t, db, "CREATE QUEUE IF NOT EXISTS "+taskQueue[len("CREATE QUEUE "):]))
		again := receiveTasks(t, c, "SELECT * FROM RECEIVE_Tasks(max_duration => '1m')")
		apply(t, c, spanner.Send("Tasks", spanner.Key{1}, fmt.Sprint(round)))
		require.Equal(t, fmt.Sprint(round), again.next(t).Payload)
		require.NoError(t, updateDDL(t, db, "DROP QUEUE Tasks"))
		require.Equal(t, codes.NotFound, spanner.ErrCode(again.end(t)))
	}
}
