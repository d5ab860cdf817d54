package queuesql

import (
	"context"
	"database/sql"

	"cloud.google.com/go/spanner"
)

// arguments returns the statement's parameters as database/sql has them.
func arguments(s spanner.Statement) []any {
	args := make([]any, 0, len(s.Params))
	for name, value := range s.Params {
		args = append(args, sql.Named(name, value))
	}
	return args
}

// execute runs a DML statement at once, also where the connection collects DML into batches: those are flushed by whatever
// is sent as a query. It reports false when the statement was put into a batch all the same, to be executed later.
func execute(ctx context.Context, tx *sql.Tx, s spanner.Statement) (executed bool, err error) {
	rows, err := tx.QueryContext(ctx, s.SQL, arguments(s)...)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return false, err
	}
	for rows.Next() {
	}
	// DML without THEN RETURN has no columns. The driver's own answer for a statement in a batch has one.
	return len(columns) == 0, rows.Err()
}
