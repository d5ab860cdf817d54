package backing

import (
	"fmt"
	"time"

	"github.com/cloudspannerecosystem/memefish/token"

	"github.com/spanqueue/spanqueue/schema"
)

// Rebuilds reports whether to must have a table of its own: the emulator cannot change how a table is interleaved. The
// messages would not come along.
func (q *Queue) Rebuilds(to *Queue) bool {
	return q.Definition.Interleave.InParent != to.Definition.Interleave.InParent
}

// Alter returns the statements that make the queue to, which must have come from it by schema.Queue.Alter.
func (q *Queue) Alter(to *Queue, clockOffset time.Duration) []string {
	var statements []string
	if q.Rebuilds(to) {
		statements = append([]string{"DROP INDEX " + q.indexName(), q.dropTable()}, to.createTable(clockOffset)...)
	} else {
		for _, clause := range []string{to.newOnDelete(q.Definition.Interleave), to.newRowDeletion(q.Definition.RowDeletion)} {
			if clause != "" {
				statements = append(statements, fmt.Sprintf("ALTER TABLE %s %s", token.QuoteSQLIdent(q.Name()), clause))
			}
		}
	}
	return append(statements, fmt.Sprintf("ALTER TABLE %s ALTER COLUMN Declaration SET DEFAULT (%s)",
		q.declarationName(), token.QuoteSQLString(to.Definition.DDL())))
}

// newOnDelete is the clause that changes what the deletion of a parent does, or "".
func (q *Queue) newOnDelete(before schema.Interleave) string {
	now := q.Definition.Interleave
	if !now.InParent || now.OnDelete == before.OnDelete {
		return ""
	}
	return "SET ON DELETE " + now.OnDelete.String()
}

// newRowDeletion is the clause that changes the row deletion policy, or "".
func (q *Queue) newRowDeletion(before schema.RowDeletion) string {
	now := q.Definition.RowDeletion
	switch {
	case now == before:
		return ""
	case now.Column == "":
		return "DROP ROW DELETION POLICY"
	case before.Column == "":
		return "ADD " + now.DDL()
	}
	return "REPLACE " + now.DDL()
}

// SameMessages reports whether the messages of to are read as those of q: nothing is different but what ALTER QUEUE can
// change.
func (q *Queue) SameMessages(to *Queue) bool {
	a, b := q.Definition, to.Definition
	a.Options, b.Options = schema.QueueOptions{}, schema.QueueOptions{}
	a.RowDeletion, b.RowDeletion = schema.RowDeletion{}, schema.RowDeletion{}
	a.Interleave, b.Interleave = schema.Interleave{}, schema.Interleave{}
	return a.DDL() == b.DDL()
}
