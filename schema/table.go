package schema

import (
	"fmt"
	"strings"
)

// table is the definition of a table that belongs to a queue. It has only what
// those tables need; tables of the application are written as SQL.
type table struct {
	name        string
	columns     []Column
	key         []KeyPart
	rowDeletion RowDeletion
}

func (t table) ddl() string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE %s (\n", quoteIdent(t.name))
	for _, c := range t.columns {
		fmt.Fprintf(&b, "  %s,\n", c.DDL())
	}
	fmt.Fprintf(&b, ") PRIMARY KEY (%s)", keyPartsDDL(t.key))
	if clause := t.rowDeletion.DDL(); clause != "" {
		b.WriteString(",\n" + clause)
	}
	return b.String()
}

// keyColumnsOf returns the queue's key columns as they stand in a table of its
// own: same names, types and NULLs, but plain. The value of a key is copied
// there, so nothing may be generated, filled in or hidden.
func keyColumnsOf(q Queue) []Column {
	columns := make([]Column, len(q.KeyColumns))
	for i, c := range q.KeyColumns {
		columns[i] = Column{Name: c.Name, Type: c.Type, NotNull: c.NotNull}
	}
	return columns
}

// ownName returns the name for a column of the library's own in a table that
// also holds q's key columns: the wanted one, with underscores after it while a
// key column has that name. A queue is never refused for the names of its key.
func ownName(q Queue, wanted string) string {
	for {
		if _, taken := q.KeyColumn(wanted); !taken {
			return wanted
		}
		wanted += "_"
	}
}

// validateQueueTable checks what the tables of a queue have in common.
func validateQueueTable(q Queue, name string, retentionDays int64) error {
	if err := q.Validate(); err != nil {
		return fmt.Errorf("queue %s: %w", q.Name, err)
	}
	if why := nameProblem(name); why != "" {
		return fieldErrorf("Queue.Name", q.Name, "the name of the table, %s, %s", name, why)
	}
	if retentionDays < 0 || retentionDays > maxDays {
		return fieldErrorf("RetentionDays", fmt.Sprint(retentionDays), "must be 0 (keep for ever) to %d", maxDays)
	}
	return nil
}
