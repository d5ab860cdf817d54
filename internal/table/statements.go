package table

import (
	"fmt"
	"strings"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
)

// CheckStatements says why this queue cannot be acknowledged by one statement, if it cannot.
func (q *Queue) CheckStatements() error {
	if q.ordered() {
		return fmt.Errorf("queue table %s orders its messages (OrderColumns is %d): an acknowledgement brings back the next one of its line, which no single statement can",
			q.table, q.schema.OrderColumns)
	}
	return nil
}

// AckStatement returns the statement that takes the delivery out, for transactions that are not of Google's client: the
// fence is the same, but on the emulator a statement scans the table. Where the delivery is not held any more it fails with
// codes.OutOfRange.
func (q *Queue) AckStatement(d backend.Delivery) (spanner.Statement, error) {
	if len(d.Key) != len(q.columns.keys) {
		return spanner.Statement{}, fmt.Errorf("queue: the message with key %v is not of queue %s, whose key is (%s)", d.Key, q.table,
			strings.Join(q.columns.keys, ", "))
	}
	n := q.columns.names
	params := make(map[string]any)
	var terms []string
	is := func(column, parameter string, value any, null bool) {
		if null {
			terms = append(terms, quote(column)+" IS NULL") // = NULL matches nothing
			return
		}
		terms, params[parameter] = append(terms, quote(column)+" = @"+parameter), value
	}
	for i, k := range q.columns.keys {
		is(k, fmt.Sprintf("k%d", i), d.Key[i], rowcodec.IsNull(d.Key[i]))
	}
	claim := claimOf(d.Token)
	is(n.DueTime, "seen", d.DeliverTime, false)
	is(n.LeaseToken, "token", claim, claim == "")
	return spanner.Statement{
		SQL:    fmt.Sprintf("DELETE FROM %s WHERE %s ASSERT_ROWS_MODIFIED 1", quote(q.table), strings.Join(terms, " AND ")),
		Params: params,
	}, nil
}

// ForgetStatement returns false: the record goes with the row.
func (q *Queue) ForgetStatement(backend.Delivery) (spanner.Statement, bool) {
	return spanner.Statement{}, false
}
