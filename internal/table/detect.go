package table

import (
	"context"
	"fmt"
	"strings"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/schema"
)

// detectSQL lists the columns of a table: key columns by their place in the key, then the others.
const detectSQL = `SELECT c.TABLE_NAME, c.COLUMN_NAME, c.SPANNER_TYPE, c.IS_NULLABLE = 'NO', c.COLUMN_DEFAULT, k.ORDINAL_POSITION, k.COLUMN_ORDERING
FROM INFORMATION_SCHEMA.COLUMNS c
LEFT JOIN INFORMATION_SCHEMA.INDEX_COLUMNS k
  ON k.TABLE_SCHEMA = '' AND k.TABLE_NAME = c.TABLE_NAME AND k.INDEX_TYPE = 'PRIMARY_KEY' AND k.COLUMN_NAME = c.COLUMN_NAME
WHERE c.TABLE_SCHEMA = '' AND LOWER(c.TABLE_NAME) = LOWER(@name)
ORDER BY k.ORDINAL_POSITION, c.ORDINAL_POSITION`

// orderSQL lists the columns of the index that tells whose turn it is.
const orderSQL = `SELECT COLUMN_NAME, COLUMN_ORDERING FROM INFORMATION_SCHEMA.INDEX_COLUMNS
WHERE TABLE_SCHEMA = '' AND LOWER(TABLE_NAME) = LOWER(@name) AND LOWER(INDEX_NAME) = LOWER(@index) AND ORDINAL_POSITION IS NOT NULL
ORDER BY ORDINAL_POSITION`

// Detect reads a queue table's definition from the database: its key, payload, order, and the numbers of shards and
// priorities. Clauses that do not matter to a sender or receiver (interleaving, row deletion) are not read. It reports false when there
// is no table of that name, or one that does not look like a queue table at all.
func Detect(ctx context.Context, client *spanner.Client, name string) (t schema.QueueTable, found bool, err error) {
	var columns, primaryKey []string
	looksLikeIt := 0
	rows := client.Single().Query(ctx, spanner.Statement{SQL: detectSQL, Params: map[string]any{"name": name}})
	err = rows.Do(func(row *spanner.Row) error {
		var column, columnType string // and the table's name, as it is spelled
		var notNull bool
		var preset, order spanner.NullString
		var position spanner.NullInt64
		if err := row.Columns(&name, &column, &columnType, &notNull, &preset, &position, &order); err != nil {
			return err
		}
		ddl := quote(column) + " " + typeDDL(columnType)
		if notNull {
			ddl += " NOT NULL"
		}
		if preset.Valid {
			ddl += " DEFAULT (" + preset.StringVal + ")"
		}
		columns = append(columns, ddl)
		if position.Valid {
			primaryKey = append(primaryKey, quote(column)+" "+order.StringVal)
		}
		switch strings.TrimRight(strings.ToLower(column), "_") {
		case "visibleat", "leasetoken":
			looksLikeIt++
		}
		return nil
	})
	if err != nil || looksLikeIt < 2 {
		return schema.QueueTable{}, false, err
	}
	// One parser reads DDL and catalogue.
	table := fmt.Sprintf("CREATE TABLE %s (%s) PRIMARY KEY (%s)", quote(name), strings.Join(columns, ", "), strings.Join(primaryKey, ", "))
	if t, err = schema.ParseQueueTable(table); err != nil {
		return t, false, err
	}
	index := t.OrderIndexName()
	var ordered []string
	rows = client.Single().Query(ctx, spanner.Statement{SQL: orderSQL, Params: map[string]any{"name": name, "index": index}})
	err = rows.Do(func(row *spanner.Row) error {
		var column, order string
		err := row.Columns(&column, &order)
		ordered = append(ordered, quote(column)+" "+order)
		return err
	})
	if err != nil || len(ordered) == 0 {
		return t, err == nil, err
	}
	t, err = schema.ParseQueueTable(table, fmt.Sprintf("CREATE INDEX %s ON %s (%s)", quote(index), quote(name), strings.Join(ordered, ", ")))
	return t, err == nil, err
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
