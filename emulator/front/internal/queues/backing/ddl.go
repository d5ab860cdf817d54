package backing

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/cloudspannerecosystem/memefish/token"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/tvf"
	"github.com/spanqueue/spanqueue/schema"
)

const (
	// DeclarationPrefix begins the names of declaration tables.
	DeclarationPrefix = "spanqueue_queue_"
	indexPrefix       = "spanqueue_sent_"

	maxName = 128
)

// objectName puts the prefix before a queue's name, within the length that Spanner allows.
func objectName(prefix, queue string) string {
	name := prefix + queue
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(strings.ToLower(queue)))
	return name[:maxName-17] + "_" + hex.EncodeToString(sum[:8])
}

// Create returns the statements that create the queue. declared is the statement as the user wrote it. The clock of
// the queue is ahead of the emulator's by clockOffset, which a DeliverTime of "now" must show.
func (q *Queue) Create(declared string, clockOffset time.Duration) []string {
	return append(q.createTable(clockOffset),
		fmt.Sprintf("CREATE TABLE %s (\n  Declaration STRING(MAX) NOT NULL DEFAULT (%s)\n) PRIMARY KEY (Declaration)",
			q.declarationName(), token.QuoteSQLString(declared)))
}

// createTable returns the statements that create the table and its index.
//
// The emulator has no INTERLEAVE IN without PARENT. It promises nothing but that rows are stored side by side, so it is
// left out; the same table with PARENT, created and dropped before, has the emulator check the parent and the key.
func (q *Queue) createTable(clockOffset time.Duration) []string {
	var statements []string
	parent := q.Definition.Interleave
	if parent.Table != "" && !parent.InParent {
		checked := parent
		checked.InParent = true
		statements = append(statements, q.table(clockOffset, checked), q.dropTable())
		parent = schema.Interleave{}
	}
	return append(statements, q.table(clockOffset, parent),
		fmt.Sprintf("CREATE INDEX %s ON %s (%s) STORING (%s, %s)", q.indexName(), token.QuoteSQLIdent(q.Name()),
			sentColumn, schema.DeliverTimeColumn, generationColumn))
}

func (q *Queue) table(clockOffset time.Duration, parent schema.Interleave) string {
	d := q.Definition
	var table strings.Builder
	fmt.Fprintf(&table, "CREATE TABLE %s (\n", token.QuoteSQLIdent(d.Name))
	for _, c := range d.KeyColumns {
		fmt.Fprintf(&table, "  %s,\n", c.DDL())
	}
	payload := schema.Column{Name: schema.PayloadColumn, Type: d.Payload, NotNull: true, Hidden: d.PayloadHidden}
	fmt.Fprintf(&table, "  %s,\n", payload.DDL())
	fmt.Fprintf(&table, "  %s TIMESTAMP NOT NULL DEFAULT (%s),\n", schema.DeliverTimeColumn, Now(clockOffset))
	fmt.Fprintf(&table, "  %s STRING(36) NOT NULL DEFAULT (GENERATE_UUID()) HIDDEN,\n", generationColumn)
	fmt.Fprintf(&table, "  %s TIMESTAMP NOT NULL DEFAULT (CURRENT_TIMESTAMP()) HIDDEN\n", sentColumn)
	var parts []string
	for _, p := range d.KeyParts() {
		parts = append(parts, p.DDL())
	}
	fmt.Fprintf(&table, ") PRIMARY KEY (%s)", strings.Join(parts, ", "))
	for _, clause := range []string{parent.DDL(), d.RowDeletion.DDL()} {
		if clause != "" {
			table.WriteString(",\n" + clause)
		}
	}
	return table.String()
}

// Drop returns the statements that drop the queue.
func (q *Queue) Drop() []string {
	return []string{"DROP INDEX " + q.indexName(), q.dropTable(), "DROP TABLE " + q.declarationName()}
}

func (q *Queue) dropTable() string { return "DROP TABLE " + token.QuoteSQLIdent(q.Name()) }

func (q *Queue) indexName() string       { return objectName(indexPrefix, q.Name()) }
func (q *Queue) declarationName() string { return objectName(DeclarationPrefix, q.Name()) }

// Owns reports whether an object of that name is part of how the queue is kept, besides the table of its own name.
func (q *Queue) Owns(name string) bool {
	return strings.EqualFold(name, q.indexName()) || strings.EqualFold(name, q.declarationName())
}

// Reserved reports whether an object of that name could be taken for a part of how a queue is kept.
func Reserved(name string) bool {
	name = strings.ToLower(name)
	return strings.HasPrefix(name, DeclarationPrefix) || strings.HasPrefix(name, indexPrefix)
}

// ReservedColumn reports whether the table of a queue has a column of that name besides the declared ones. The emulator
// does not refuse a table that has two of one name: it dies of it.
func ReservedColumn(name string) bool {
	return strings.EqualFold(name, generationColumn) || strings.EqualFold(name, sentColumn)
}

// Declared reads the queue from the DEFAULT of its declaration. False: it is none.
func Declared(columnDefault string) (*Queue, bool) {
	declared, ok := tvf.StringLiteral(columnDefault)
	if !ok {
		return nil, false
	}
	statement, err := schema.ParseStatement(declared)
	if err != nil {
		return nil, false
	}
	create, ok := statement.(*schema.CreateQueue)
	if !ok {
		return nil, false
	}
	return New(create.Queue), true
}

// Now is the expression for the time of a clock that is ahead of the emulator's by offset.
func Now(offset time.Duration) string {
	if offset == 0 {
		return "CURRENT_TIMESTAMP()"
	}
	return fmt.Sprintf("TIMESTAMP_ADD(CURRENT_TIMESTAMP(), INTERVAL %d NANOSECOND)", offset.Nanoseconds())
}
