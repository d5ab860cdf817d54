package tvf

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScanDDL(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]DDL{
		"CREATE TABLE Q (\n  Id INT64,\n) PRIMARY KEY(Id)":            {"CREATE", "TABLE", "Q"},
		"-- c\ncreate table if not exists `Q` (Id INT64)":             {"CREATE", "TABLE", "Q"},
		"CREATE UNIQUE NULL_FILTERED INDEX spanqueue_sent_Q ON Q(Id)": {"CREATE", "INDEX", "spanqueue_sent_Q"},
		"DROP TABLE Q":                       {"DROP", "TABLE", "Q"},
		"DROP INDEX IF EXISTS x":             {"DROP", "INDEX", "x"},
		"ALTER TABLE s.Q ADD COLUMN x INT64": {"ALTER", "TABLE", "s.Q"},
	} {
		got, ok := ScanDDL(sql)
		require.True(t, ok, sql)
		require.Equal(t, want, got, sql)
	}
	for _, sql := range []string{"", "CREATE", "CREATE VIEW V SQL SECURITY INVOKER AS SELECT 1", "SELECT 1", "CREATE TABLE", "TABLE Q", "CREATE 'x"} {
		_, ok := ScanDDL(sql)
		require.False(t, ok, sql)
	}
}

func TestReplaceWord(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]string{
		"SELECT CURRENT_TIMESTAMP()":                        "SELECT X",
		"SELECT current_timestamp , 1":                      "SELECT X , 1",
		"SELECT CURRENT_TIMESTAMP ( ), (CURRENT_TIMESTAMP)": "SELECT X, (X)",
		"SELECT 'CURRENT_TIMESTAMP()' -- CURRENT_TIMESTAMP": "SELECT 'CURRENT_TIMESTAMP()' -- CURRENT_TIMESTAMP",
		"SELECT `CURRENT_TIMESTAMP` FROM T":                 "SELECT `CURRENT_TIMESTAMP` FROM T",
		"SELECT CURRENT_TIMESTAMP(), 'open":                 "SELECT X, 'open",
	} {
		require.Equal(t, want, ReplaceWord(sql, "CURRENT_TIMESTAMP", "X"), sql)
	}
}

func TestStringLiteral(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]string{"'a'": "a", `"a\n'"`: "a\n'", `r'\d' -- c`: `\d`, "''": ""} {
		got, ok := StringLiteral(sql)
		require.True(t, ok, sql)
		require.Equal(t, want, got)
	}
	for _, sql := range []string{"", "a", "1", "b'a'", "'a' 'b'", "'a", "\"\\0", "'a' \"\\0"} {
		_, ok := StringLiteral(sql)
		require.False(t, ok, sql)
	}
}
