package schema

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseErrorsSayWhereAndWhat(t *testing.T) {
	t.Parallel()
	const key = ") PRIMARY KEY (Id)"
	for _, c := range []struct {
		sql          string
		line, column int
		says         []string
	}{
		// The payload.
		{"CREATE QUEUE Q (Id INT64" + key, 1, 16, []string{"queue Q has no Payload column", "BYTES, STRING, JSON or a proto type"}},
		{"CREATE QUEUE Q (Id INT64, Payload BYTES(MAX)" + key, 1, 45, []string{"NOT NULL", "Payload, which may not be nullable", "found )"}},
		{"CREATE QUEUE Q (Id INT64,\n  Payload INT64 NOT NULL" + key, 2, 11, []string{`Payload "INT64"`, "must be BYTES, STRING, JSON or a proto"}},
		{"CREATE QUEUE Q (Id INT64, Payload ARRAY<BYTES(MAX)> NOT NULL" + key, 1, 35, []string{"Payload cannot be ARRAY"}},
		{"CREATE QUEUE Q (Id INT64, Payload STRING NOT NULL" + key, 1, 42, []string{"expected (, found NOT"}},
		{"CREATE QUEUE Q (Id INT64, Payload BYTES(0) NOT NULL" + key, 1, 35, []string{"BYTES(0)", "1 to 10485760, or MAX"}},
		{"CREATE QUEUE Q (Id INT64, Payload BYTES(99999999999999999999) NOT NULL" + key, 1, 41, []string{"too large"}},
		{"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL, Payload JSON NOT NULL" + key, 1, 50, []string{"Payload is declared twice"}},
		{"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL DEFAULT (JSON '1')" + key, 1, 49, []string{"neither generated nor have a default"}},
		{"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL AS (x) STORED" + key, 1, 49, []string{"neither generated nor have a default"}},
		{"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL OPTIONS (allow_commit_timestamp=true)" + key, 1, 49, []string{"needs a TIMESTAMP column"}},
		{"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL) PRIMARY KEY (Id, payload)", 1, 67, []string{"cannot be part of a queue's key"}},
		// Further columns, and those that may not be.
		{"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL,\n Kind STRING(9)" + key, 2, 2, []string{`"Kind"`, "not in the primary key", "no columns but its key"}},
		{"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL, deliverTime TIMESTAMP" + key, 1, 50, []string{"DeliverTime is added by the service"}},
		{"CREATE QUEUE Q (DeliverTime TIMESTAMP, Payload JSON NOT NULL) PRIMARY KEY (DeliverTime)", 1, 17, []string{"may not be declared"}},
		{"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL) PRIMARY KEY (Id, DeliverTime)", 1, 67, []string{"cannot be part of a queue's key"}},
		{"CREATE QUEUE Q (SpannerLeaseToken STRING(9), Payload JSON NOT NULL) PRIMARY KEY (SpannerLeaseToken)", 1, 17, []string{"reserved", "RECEIVE"}},
		{"CREATE QUEUE Q (Id INT64, ID INT64, Payload JSON NOT NULL" + key, 1, 27, []string{"duplicate column", "Id"}},
		// The key.
		{"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL)", 1, 49, []string{"expected PRIMARY, found the end of the text"}},
		{"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL) PRIMARY KEY ()", 1, 17, []string{"not in the primary key"}},
		{"CREATE QUEUE Q (Payload JSON NOT NULL) PRIMARY KEY ()", 1, 16, []string{"1 to 16 key columns"}},
		{"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL) PRIMARY KEY (Id, Nr)", 1, 67, []string{"no such column"}},
		{"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL) PRIMARY KEY (Id, id)", 1, 67, []string{"in the key twice"}},
		{"CREATE QUEUE Q (Id JSON, Payload JSON NOT NULL" + key, 1, 20, []string{"JSON cannot be a key"}},
		{"CREATE QUEUE Q (Id ARRAY<INT64>, Payload JSON NOT NULL" + key, 1, 20, []string{"key column Id cannot be ARRAY"}},
		{"CREATE QUEUE Q (Id TOKENLIST, Payload JSON NOT NULL" + key, 1, 20, []string{"cannot be TOKENLIST"}},
		{"CREATE QUEUE Q (Id INT64(8), Payload JSON NOT NULL" + key, 1, 25, []string{"INT64 has no length"}},
		{"CREATE QUEUE Q (Id INT64 DEFAULT (1), Payload JSON NOT NULL" + key, 1, 26, []string{"expected , or ) after the column, found DEFAULT"}},
		{"CREATE QUEUE Q (Id INT64 OPTIONS (allow_commit_timestamp = true), Payload JSON NOT NULL" + key, 1, 26, []string{"only a TIMESTAMP column"}},
		{"CREATE QUEUE Q (Id TIMESTAMP OPTIONS (allow_commit_timestamp = false), Payload JSON NOT NULL" + key, 1, 64, []string{"expected TRUE or NULL, found false"}},
		{"CREATE QUEUE Q (Id TIMESTAMP OPTIONS (colour = 1), Payload JSON NOT NULL" + key, 1, 39, []string{"allow_commit_timestamp", "found colour"}},
		{"CREATE QUEUE Q (Id INT64 AS () STORED, Payload JSON NOT NULL" + key, 1, 30, []string{"expected an expression"}},
		{"CREATE QUEUE Q (Id INT64 AS (1), Payload JSON NOT NULL" + key, 1, 32, []string{"expected STORED, found ,"}},
		{"CREATE QUEUE Q (Id INT64 AS ((1) STORED", 1, 40, []string{"expected ) to end the expression"}},
		// Names.
		{"CREATE QUEUE", 1, 13, []string{"expected the queue's name, found the end of the text"}},
		{"CREATE QUEUE Order (Id INT64", 1, 14, []string{"reserved word Order", "`Order` in back-quotes"}},
		{"CREATE QUEUE shop.Q (Id INT64, Payload JSON NOT NULL" + key, 1, 14, []string{"named schema"}},
		{"CREATE QUEUE `shop.Q` (Id INT64, Payload JSON NOT NULL" + key, 1, 14, []string{"named schema"}},
		{"CREATE QUEUE `1st` (Id INT64, Payload JSON NOT NULL" + key, 1, 14, []string{"not begin with a digit"}},
		{"CREATE QUEUE _q (Id INT64, Payload JSON NOT NULL" + key, 1, 14, []string{"begin with a letter"}},
		{"CREATE QUEUE `é` (Id INT64, Payload JSON NOT NULL" + key, 1, 14, []string{"found 'é'"}},
		{"CREATE QUEUE " + strings.Repeat("q", 129) + " (Id INT64, Payload JSON NOT NULL" + key, 1, 14, []string{"129", "128 are allowed"}},
		{"CREATE QUEUE IF EXISTS Q", 1, 14, []string{"reserved word IF"}},
		{"DROP QUEUE a.b", 1, 12, []string{"named schema"}},
		// The clauses.
		{"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL" + key + ", INTERLEAVE IN PARENT", 1, 88, []string{"expected the name of the parent table, found the end"}},
		{"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL" + key + ", INTERLEAVE IN PARENT T ON DELETE SET NULL", 1, 101, []string{"CASCADE or NO ACTION", "found SET"}},
		{"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL" + key + ", INTERLEAVE IN PARENT q", 1, 68, []string{"in itself"}},
		{"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL" + key + ", ROW DELETION POLICY (OLDER_THAN(Id, INTERVAL 1 DAY))", 1, 68, []string{"counted from a TIMESTAMP", "INT64"}},
		{"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL" + key + ", ROW DELETION POLICY (OLDER_THAN(Nr, INTERVAL 1 DAY))", 1, 68, []string{"no such column"}},
		{"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL" + key + ", ROW DELETION POLICY (OLDER_THAN(DeliverTime, INTERVAL -1 DAY))", 1, 122, []string{"a number of days, found -"}},
		{"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL" + key + ", OPTIONS (receive_mode = 'PUSH')", 1, 92, []string{"'PULL'", `found "PUSH"`}},
		{"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL" + key + ", OPTIONS (receive_mode = PULL)", 1, 92, []string{"a string or NULL, found PULL"}},
		{"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL" + key + ", OPTIONS (disable_send = 'true')", 1, 92, []string{"TRUE, FALSE or NULL"}},
		{"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL" + key + ", OPTIONS (disable_send = true, disable_send = true)", 1, 98, []string{"disable_send is given twice"}},
		{"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL" + key + ", OPTIONS (size = 3)", 1, 77, []string{"disable_delivery, disable_send, locality_group, receive_mode", "found size"}},
		{"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL" + key + ", OPTIONS ()", 1, 77, []string{"expected one of the options", "found )"}},
		{"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL" + key + ", OPTIONS (disable_send = true), INTERLEAVE IN T", 1, 99, []string{"in this order", "found INTERLEAVE"}},
		{"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL" + key + " OPTIONS (disable_send = true)", 1, 67, []string{"end of the statement, found OPTIONS"}},
		// The whole.
		{"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL" + key + "; DROP TABLE T", 1, 68, []string{"one statement at a time", "found DROP"}},
		{"CREATE QUEUE Q (Id INT64,, Payload JSON NOT NULL" + key, 1, 26, []string{"a column's name, found ,"}},
		{"CREATE QUEUE Q (Id INT64 Payload JSON NOT NULL" + key, 1, 26, []string{"expected , or ) after the column, found Payload"}},
		{"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL" + key + ", OPTIONS (receive_mode = 'PULL)", 1, 92, []string{"unclosed string literal"}},
		{"CREATE QUEUE Q /* no end", 1, 16, []string{"unclosed comment"}},
		{"CREATE QUEUE Q (Id INT64 /* é */ \xff", 1, 34, []string{"illegal input character"}},
		{"ALTER QUEUE Q", 1, 14, []string{"SET OPTIONS", "REPLACE or DROP", "found the end of the text"}},
		{"ALTER QUEUE Q RENAME TO R", 1, 15, []string{"found RENAME"}},
		{"ALTER QUEUE Q SET ON DELETE CASCADE, SET ON DELETE CASCADE", 1, 36, []string{"end of the statement"}},
		{"DROP QUEUE Q CASCADE", 1, 14, []string{"end of the statement, found CASCADE"}},
	} {
		t.Run(c.sql, func(t *testing.T) {
			t.Parallel()
			st, err := ParseStatement(c.sql)
			require.Error(t, err)
			require.Nil(t, st)
			var at *ParseError
			require.ErrorAs(t, err, &at)
			require.Equal(t, [2]int{c.line, c.column}, [2]int{at.Line, at.Column}, err.Error())
			for _, s := range c.says {
				require.ErrorContains(t, err, s)
			}
			require.True(t, strings.HasPrefix(err.Error(), "schema: line "))
		})
	}
}

// A definition that reads well but cannot be used keeps its *FieldError, so that
// callers can tell it from a slip in the text.
func TestParseErrorWrapsTheField(t *testing.T) {
	t.Parallel()
	_, err := ParseStatement("CREATE QUEUE Q (Id JSON, Payload JSON NOT NULL) PRIMARY KEY (Id)")
	var field *FieldError
	require.ErrorAs(t, err, &field)
	require.Equal(t, "KeyColumns[0].Type", field.Field)
	_, err = ParseStatement("CREATE QUEUE Q (")
	require.False(t, errors.As(err, &field))
}
