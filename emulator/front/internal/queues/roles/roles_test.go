package roles

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/tvf"
)

func apply(t testing.TB, b Book, statements ...string) Book {
	t.Helper()
	for _, sql := range statements {
		var err error
		b, err = try(t, b, sql)
		require.NoError(t, err, sql)
	}
	return b
}

func try(t testing.TB, b Book, sql string) (Book, error) {
	t.Helper()
	s, ok, err := tvf.ParseRole(sql)
	require.NoError(t, err, sql)
	require.True(t, ok, sql)
	return b.Apply(s)
}

func TestPrivileges(t *testing.T) {
	t.Parallel()
	b := apply(t, Book{}, "CREATE ROLE producer", "CREATE ROLE consumer", "CREATE ROLE everything", "CREATE ROLE nothing",
		"GRANT INSERT ON QUEUE Tasks TO ROLE producer",
		"GRANT EXECUTE ON TABLE FUNCTION RECEIVE_Tasks, RENEWLEASE_Tasks TO ROLE consumer",
		"GRANT DELETE ON QUEUE tasks TO ROLE Consumer",
		"GRANT ROLE producer, consumer TO ROLE everything",
		"GRANT SELECT ON QUEUE Open TO ROLE public",
		"GRANT SELECT(A, B), INSERT ON TABLE T TO ROLE producer")
	for _, test := range []struct {
		role, privilege, kind, object string
		want                          bool
	}{
		{"producer", "INSERT", OnQueue, "Tasks", true},
		{"PRODUCER", "INSERT", OnQueue, "TASKS", true},
		{"producer", "INSERT", OnQueue, "Other", false},
		{"producer", "SELECT", OnQueue, "Tasks", false},
		{"producer", "DELETE", OnQueue, "Tasks", false},
		{"producer", "EXECUTE", OnFunction, "RECEIVE_Tasks", false},
		{"consumer", "EXECUTE", OnFunction, "receive_tasks", true},
		{"consumer", "EXECUTE", OnFunction, "RENEWLEASE_Tasks", true},
		{"consumer", "DELETE", OnQueue, "Tasks", true},
		{"consumer", "INSERT", OnQueue, "Tasks", false},
		{"everything", "INSERT", OnQueue, "Tasks", true},
		{"everything", "DELETE", OnQueue, "Tasks", true},
		{"nothing", "INSERT", OnQueue, "Tasks", false},
		{"nothing", "SELECT", OnQueue, "Open", true},
		{"no such role", "INSERT", OnQueue, "Tasks", false},
	} {
		require.Equal(t, test.want, b.Allows(test.role, test.privilege, test.kind, test.object), "%+v", test)
	}
	require.Equal(t, []string{"producer", "consumer"}, b.GrantedOn(OnQueue, "TASKS"))

	b = apply(t, b, "REVOKE INSERT ON QUEUE TASKS FROM ROLE producer", "REVOKE INSERT ON QUEUE Tasks FROM ROLE producer", "REVOKE ROLE consumer FROM ROLE everything")
	require.False(t, b.Allows("producer", "INSERT", OnQueue, "Tasks"))
	require.False(t, b.Allows("everything", "DELETE", OnQueue, "Tasks"))
	require.True(t, b.Allows("consumer", "DELETE", OnQueue, "Tasks"))
}

func TestBookReadsBack(t *testing.T) {
	t.Parallel()
	b := apply(t, Book{}, "CREATE ROLE a", "CREATE ROLE `select`", "GRANT ROLE a TO ROLE `SELECT`",
		"GRANT UPDATE(`from`, B) ON TABLE s.T TO ROLE a", "GRANT SELECT ON CHANGE STREAM C TO ROLE `select`", "GRANT SELECT, INSERT ON QUEUE Q TO ROLE a, a")
	text, err := b.Text()
	require.NoError(t, err)
	again, err := Read(text)
	require.NoError(t, err)
	require.Equal(t, b, again)
	require.Equal(t, []string{
		"CREATE ROLE a", "CREATE ROLE `select`", "GRANT ROLE a TO ROLE `select`", "GRANT UPDATE(`from`, B) ON TABLE s.T TO ROLE a",
		"GRANT SELECT ON CHANGE STREAM C TO ROLE `select`", "GRANT SELECT ON QUEUE Q TO ROLE a", "GRANT INSERT ON QUEUE Q TO ROLE a",
	}, again.Statements())
	for _, text := range []string{"", "{}", `["SELECT 1"]`, `["GRANT SELECT ON QUEUE Q TO ROLE nobody"]`, `["CREATE ROLE"]`} {
		_, err := Read(text)
		require.Error(t, err, text)
	}
}

func TestStatementsThatAreRefused(t *testing.T) {
	t.Parallel()
	b := apply(t, Book{}, "CREATE ROLE a", "CREATE ROLE b", "CREATE ROLE c", "GRANT SELECT ON QUEUE Q TO ROLE a", "GRANT ROLE b TO ROLE c")
	for sql, want := range map[string]codes.Code{
		"CREATE ROLE A":                              codes.FailedPrecondition,
		"CREATE ROLE public":                         codes.InvalidArgument,
		"CREATE ROLE spanner_mine":                   codes.InvalidArgument,
		"DROP ROLE nobody":                           codes.NotFound,
		"DROP ROLE a":                                codes.FailedPrecondition,
		"DROP ROLE b":                                codes.FailedPrecondition,
		"DROP ROLE c":                                codes.FailedPrecondition,
		"GRANT SELECT ON QUEUE Q TO ROLE nobody":     codes.NotFound,
		"REVOKE SELECT ON QUEUE Q FROM ROLE nobody":  codes.NotFound,
		"GRANT UPDATE ON QUEUE Q TO ROLE a":          codes.InvalidArgument,
		"GRANT EXECUTE ON QUEUE Q TO ROLE a":         codes.InvalidArgument,
		"GRANT SELECT(Id) ON QUEUE Q TO ROLE a":      codes.InvalidArgument,
		"GRANT SELECT ON TABLE FUNCTION f TO ROLE a": codes.InvalidArgument,
		"GRANT ROLE nobody TO ROLE a":                codes.NotFound,
		"GRANT ROLE a TO ROLE a":                     codes.InvalidArgument,
		"GRANT ROLE c TO ROLE b":                     codes.InvalidArgument,
	} {
		after, err := try(t, b, sql)
		require.Equal(t, want, status.Code(err), "%s: %v", sql, err)
		require.Equal(t, b, after, "%s changes nothing", sql)
	}
	apply(t, b, "CREATE ROLE IF NOT EXISTS A", "DROP ROLE IF EXISTS nobody", "REVOKE SELECT ON QUEUE Q FROM ROLE a", "DROP ROLE a")
	for i := range maxRoles - 3 {
		b = apply(t, b, fmt.Sprintf("CREATE ROLE r%d", i))
	}
	_, err := try(t, b, "CREATE ROLE one_more")
	require.Equal(t, codes.FailedPrecondition, status.Code(err))
}
