package schema

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOperationsStatements(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		o       Operations
		seconds int64
		policy  string
	}{
		{Operations{}, 172800, "INTERVAL 2 DAY"},
		{Operations{Retention: time.Second}, 1, "INTERVAL 1 DAY"},
		{Operations{Retention: 1500 * time.Millisecond}, 2, "INTERVAL 1 DAY"},
		{Operations{Retention: 48*time.Hour + 1}, 172801, "INTERVAL 3 DAY"},
	} {
		require.NoError(t, c.o.Validate())
		require.Equal(t, c.seconds, c.o.RetentionSeconds())
		statements := c.o.Statements()
		require.Len(t, statements, 2)
		require.Contains(t, statements[0], "CREATE TABLE Operations (")
		require.Contains(t, statements[0], "OLDER_THAN(CompletedAt, "+c.policy+")")
		require.Contains(t, statements[1], "CREATE INDEX OperationsByCompletion ON Operations ")
	}
	named := Operations{Table: "Payments"}
	require.Equal(t, "Payments", named.TableName())
	require.Contains(t, named.Statements()[1], "CREATE INDEX PaymentsByCompletion ON Payments ")
}

func TestOperationsAreRefusedByName(t *testing.T) {
	t.Parallel()
	for field, o := range map[string]Operations{
		"Retention": {Retention: time.Second - 1},
		"Table":     {Table: "a b"},
	} {
		var wrong *FieldError
		require.ErrorAs(t, o.Validate(), &wrong)
		require.Equal(t, field, wrong.Field)
	}
	require.ErrorContains(t, Operations{Table: strings.Repeat("x", maxNameLength)}.Validate(), "the name of its index")
}
