package native

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/schema"
	"google.golang.org/grpc/codes"
)

// detectSQL lists the columns of what may be a queue: key columns by their place in the key, then the others.
const detectSQL = `SELECT c.TABLE_NAME, c.COLUMN_NAME, c.SPANNER_TYPE, c.IS_NULLABLE = 'NO', c.GENERATION_EXPRESSION, k.ORDINAL_POSITION, k.COLUMN_ORDERING
FROM INFORMATION_SCHEMA.COLUMNS c
LEFT JOIN INFORMATION_SCHEMA.INDEX_COLUMNS k
  ON k.TABLE_SCHEMA = '' AND k.TABLE_NAME = c.TABLE_NAME AND k.INDEX_TYPE = 'PRIMARY_KEY' AND k.COLUMN_NAME = c.COLUMN_NAME
WHERE c.TABLE_SCHEMA = '' AND LOWER(c.TABLE_NAME) = LOWER(@name)
ORDER BY k.ORDINAL_POSITION, c.ORDINAL_POSITION`

// Detect reads a queue's definition from the database: its name as declared, its key and payload. Clauses that do not
// matter to a sender or receiver (interleaving, row deletion, options) are not read.
func Detect(ctx context.Context, client *spanner.Client, name string) (schema.Queue, error) {
	var keyColumns, primaryKey, others []string
	payload, declared := "", ""
	rows := client.Single().Query(ctx, spanner.Statement{SQL: detectSQL, Params: map[string]any{"name": name}})
	err := rows.Do(func(row *spanner.Row) error {
		var column, columnType string
		var notNull bool
		var position spanner.NullInt64
		var generated, order spanner.NullString
		if err := row.Columns(&declared, &column, &columnType, &notNull, &generated, &position, &order); err != nil {
			return err
		}
		switch {
		case position.Valid:
			ddl := quote(column) + " " + typeDDL(columnType)
			if notNull {
				ddl += " NOT NULL"
			}
			if generated.Valid {
				ddl += fmt.Sprintf(" AS (%s) STORED", generated.StringVal)
			}
			keyColumns = append(keyColumns, ddl)
			primaryKey = append(primaryKey, quote(column)+" "+order.StringVal)
		case strings.EqualFold(column, schema.PayloadColumn):
			payload = typeDDL(columnType)
		default:
			others = append(others, column)
		}
		return nil
	})
	if err != nil {
		return schema.Queue{}, err
	}
	if len(keyColumns)+len(others) == 0 && payload == "" {
		return schema.Queue{}, fmt.Errorf("the database shows no queue or table of that name: is the name right, and may this role use it?")
	}
	hasDeliverTime := slices.ContainsFunc(others, func(c string) bool { return strings.EqualFold(c, schema.DeliverTimeColumn) })
	if payload == "" || !hasDeliverTime {
		return schema.Queue{}, fmt.Errorf("this is not a queue: it has the key (%s), the payload %q and the columns %v, where a queue has a key, Payload and DeliverTime",
			strings.Join(keyColumns, ", "), payload, others)
	}
	if err := checkFunction(ctx, client, declared); err != nil {
		return schema.Queue{}, err
	}
	// One parser reads DDL and catalogue.
	ddl := fmt.Sprintf("CREATE QUEUE %s (%s, %s %s NOT NULL) PRIMARY KEY (%s)", quote(declared), strings.Join(keyColumns, ", "),
		schema.PayloadColumn, payload, strings.Join(primaryKey, ", "))
	statement, err := schema.ParseStatement(ddl)
	if err != nil {
		return schema.Queue{}, err
	}
	create, ok := statement.(*schema.CreateQueue)
	if !ok {
		return schema.Queue{}, fmt.Errorf("the catalogue's columns make no queue: %s", ddl)
	}
	return create.Queue, nil
}

// checkFunction tells a queue from a table that has the columns of one, as a table of dead letters has: only a queue has
// a function that renews leases. It is asked about a token that nobody was given, which changes nothing.
func checkFunction(ctx context.Context, client *spanner.Client, name string) error {
	sql := fmt.Sprintf("SELECT SpannerOldLeaseToken FROM RENEWLEASE_%s(lease_tokens => ['spanqueue'])", name)
	err := client.Single().Query(ctx, spanner.Statement{SQL: sql}).Do(func(*spanner.Row) error { return nil })
	switch spanner.ErrCode(err) {
	case codes.OK, codes.PermissionDenied: // a role that only sends may not call it
		return nil
	case codes.InvalidArgument, codes.NotFound:
		return fmt.Errorf("this is not a queue but a table with the columns of one: %w", err)
	}
	return err
}

// typeDDL writes a type of the catalogue as DDL does: PROTO<shop.Order> is shop.Order there.
func typeDDL(catalogue string) string {
	for _, prefix := range []string{"PROTO<", "ENUM<"} {
		if name, ok := strings.CutPrefix(catalogue, prefix); ok {
			return strings.TrimSuffix(name, ">")
		}
	}
	return catalogue
}
