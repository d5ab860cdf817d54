package tvf

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseRole(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]RoleStatement{
		"CREATE ROLE producer":                                                         {Verb: "CREATE", Roles: []string{"producer"}},
		"-- c\ncreate role if not exists `producer` ;":                                 {Verb: "CREATE", If: true, Roles: []string{"producer"}},
		"DROP ROLE producer":                                                           {Verb: "DROP", Roles: []string{"producer"}},
		"Drop Role If Exists producer;":                                                {Verb: "DROP", If: true, Roles: []string{"producer"}},
		"GRANT INSERT ON QUEUE Tasks TO ROLE producer":                                 {Verb: "GRANT", Privileges: []string{"INSERT"}, Kind: "QUEUE", Objects: []string{"Tasks"}, Roles: []string{"producer"}},
		"revoke select, delete on queue A, `B` from role x":                            {Verb: "REVOKE", Privileges: []string{"SELECT", "DELETE"}, Kind: "QUEUE", Objects: []string{"A", "B"}, Roles: []string{"x"}},
		"GRANT EXECUTE ON TABLE FUNCTION RECEIVE_Tasks, RENEWLEASE_Tasks TO ROLE a, b": {Verb: "GRANT", Privileges: []string{"EXECUTE"}, Kind: "TABLE FUNCTION", Objects: []string{"RECEIVE_Tasks", "RENEWLEASE_Tasks"}, Roles: []string{"a", "b"}},
		"GRANT SELECT, UPDATE(A, `select`) ON TABLE s.T TO ROLE a":                     {Verb: "GRANT", Privileges: []string{"SELECT", "UPDATE(A, `select`)"}, Kind: "TABLE", Objects: []string{"s.T"}, Roles: []string{"a"}},
		"GRANT ROLE a, b TO ROLE c":                                                    {Verb: "GRANT", Kind: "ROLE", Objects: []string{"a", "b"}, Roles: []string{"c"}},
		"GRANT SELECT ON CHANGE STREAM C TO ROLE a":                                    {Verb: "GRANT", Privileges: []string{"SELECT"}, Kind: "CHANGE STREAM", Objects: []string{"C"}, Roles: []string{"a"}},
		"GRANT USAGE ON SCHEMA s TO ROLE a":                                            {Verb: "GRANT", Privileges: []string{"USAGE"}, Kind: "SCHEMA", Objects: []string{"s"}, Roles: []string{"a"}},
		"GRANT SELECT ON ALL TABLES IN SCHEMA s TO ROLE a\n":                           {Verb: "GRANT", Privileges: []string{"SELECT"}, Kind: "ALL TABLES IN SCHEMA", Objects: []string{"s"}, Roles: []string{"a"}},
	} {
		got, ok, err := ParseRole(sql)
		require.NoError(t, err, sql)
		require.True(t, ok, sql)
		require.Equal(t, want, *got, sql)
	}
	for _, sql := range []string{"", "SELECT 1", "CREATE TABLE role (Id INT64) PRIMARY KEY (Id)", "DROP TABLE T", "'GRANT'", "CREATE `ROLE` x"} {
		_, ok, err := ParseRole(sql)
		require.NoError(t, err, sql)
		require.False(t, ok, sql)
	}
	for sql, reason := range map[string]string{
		"CREATE ROLE":                                    "the role's name",
		"CREATE ROLE a.b":                                "the role's name",
		"CREATE ROLE a b":                                "the end of the statement",
		"GRANT":                                          "SELECT, INSERT",
		"GRANT ALL ON QUEUE Q TO ROLE a":                 "SELECT, INSERT",
		"GRANT SELECT QUEUE Q TO ROLE a":                 "expected ON, found QUEUE",
		"GRANT SELECT ON Q TO ROLE a":                    "expected one of TABLE FUNCTION",
		"GRANT SELECT ON QUEUE TO ROLE a":                "a name",
		"GRANT SELECT ON QUEUE Q TO a":                   "expected TO ROLE",
		"REVOKE SELECT ON QUEUE Q TO ROLE a":             "expected FROM ROLE",
		"GRANT SELECT() ON TABLE T TO ROLE a":            "a column's name",
		"GRANT SELECT ON QUEUE Q TO ROLE a; DROP ROLE a": "the end of the statement",
		"GRANT SELECT ON QUEUE 'Q":                       "a name",
	} {
		_, ok, err := ParseRole(sql)
		require.True(t, ok, sql)
		require.ErrorContains(t, err, reason, sql)
	}
}

func FuzzParseRole(f *testing.F) {
	f.Add("GRANT SELECT(A), DELETE ON QUEUE `Q`, B TO ROLE a, b;")
	f.Add("REVOKE EXECUTE ON TABLE FUNCTION RECEIVE_Q FROM ROLE a")
	f.Add("CREATE ROLE IF NOT EXISTS a -- x")
	f.Add("GRANT ROLE `a' \\")
	f.Fuzz(func(t *testing.T, sql string) {
		s, ok, err := ParseRole(sql)
		if err != nil && !ok {
			t.Fatal("an error about what is no statement of roles")
		}
		if err == nil && ok && len(s.Roles) == 0 {
			t.Fatal("a statement without a role")
		}
	})
}
