package table

import (
	"errors"
	"fmt"
	"strings"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
)

var _ backend.Statements = (*Queue)(nil)

// CheckStatements implements backend.Statements.
func (q *Queue) CheckStatements() error {
	if q.schema.OrderColumns > 0 {
		return errors.New("it keeps its messages in order, and taking one out is more than one statement: handle them by Google's client (processor.Tx)")
	}
	return nil
}

// AckStatement implements backend.Statements. It finds the row by its key, so that it locks no index.
func (q *Queue) AckStatement(d backend.Delivery) (spanner.Statement, error) {
	if len(d.Key) != len(q.columns.keys) {
		return spanner.Statement{}, fmt.Errorf("queue: the message with key %v is not of queue table %s, whose key is (%s)", d.Key, q.table,
			strings.Join(q.columns.keys, ", "))
	}
	conditions, params := []string(nil), make(map[string]any)
	equal := func(column, name string, value any, null bool) {
		if null {
			conditions = append(conditions, quote(column)+" IS NULL")
			return
		}
		conditions, params[name] = append(conditions, fmt.Sprintf("%s = @%s", quote(column), name)), value
	}
	for i, k := range q.columns.keys {
		equal(k, fmt.Sprintf("k%d", i), d.Key[i], rowcodec.IsNull(d.Key[i]))
	}
	claim := claimOf(d.Token)
	equal(q.columns.names.DueTime, "seen", d.DeliverTime, false)
	equal(q.columns.names.LeaseToken, "claim", claim, claim == "")
	return spanner.Statement{
		SQL:    fmt.Sprintf("DELETE FROM %s WHERE %s ASSERT_ROWS_MODIFIED 1", quote(q.table), strings.Join(conditions, " AND ")),
		Params: params,
	}, nil
}

// ForgetStatement implements backend.Statements. The record goes with the row.
func (q *Queue) ForgetStatement(backend.Delivery) (spanner.Statement, bool) {
	return spanner.Statement{}, false
}
