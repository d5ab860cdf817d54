package native

import (
	"fmt"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
)

var _ backend.Statements = (*Queue)(nil)

// CheckStatements implements backend.Statements.
func (q *Queue) CheckStatements() error { return nil }

// ForgetStatement implements backend.Statements.
func (q *Queue) ForgetStatement(d backend.Delivery) (spanner.Statement, bool) {
	params := make(map[string]any)
	sql := fmt.Sprintf("DELETE FROM %s WHERE %s", quote(q.ledger.attemptsTable), q.sql.whereKey(d.Key, "", params))
	return spanner.Statement{SQL: sql, Params: params}, true
}
