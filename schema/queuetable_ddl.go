package schema

import (
	"fmt"
	"strings"
)

// nowDefault makes the database say when "now" is. A column that is written
// with future times cannot take commit timestamps.
const nowDefault = "CURRENT_TIMESTAMP()"

// shardDefault serves inserts that are not the library's: any shard will do.
// It also tells a reader of the catalogue how many shards there are.
//
// The library gives the shard itself. A column generated from FARM_FINGERPRINT
// of the key would spare it that, but makes a commit of 1,000 inserts five
// times and one of 1,000 claims three times slower on the emulator, where also
// UPDATE ... THEN RETURN fails on a table with such a column.
func shardDefault(shards int) string {
	return fmt.Sprintf("ABS(MOD(FARM_FINGERPRINT(GENERATE_UUID()), %d))", shards)
}

// priorityDefault is 0, and tells how many priorities there are. A CHECK would
// say it better, but makes a commit of n rows cost n squared on the emulator.
func priorityDefault(priorities int) string {
	if priorities <= 1 {
		return "0"
	}
	return fmt.Sprintf("MOD(0, %d)", priorities)
}

// ownColumn is a column of the table's own as DDL has it.
type ownColumn struct {
	Column
	preset string // the expression of its default; empty: none
}

func (c ownColumn) ddl() string {
	if c.preset == "" {
		return c.Column.DDL()
	}
	return fmt.Sprintf("%s DEFAULT (%s)", c.Column.DDL(), c.preset)
}

// ownColumns returns the table's columns besides the key, in order.
func (t QueueTable) ownColumns() []ownColumn {
	names := t.Columns()
	columns := []ownColumn{
		{t.Queue.payloadColumn(), ""},
		{Column{Name: names.DueTime, Type: Timestamp(), NotNull: true}, nowDefault},
		{Column{Name: names.VisibleAt, Type: Timestamp(), NotNull: true}, nowDefault},
		{Column{Name: names.LeaseToken, Type: String(leaseTokenLength)}, ""},
		{Column{Name: names.Attempts, Type: Int64(), NotNull: true}, "0"},
		{Column{Name: names.Errors, Type: Int64(), NotNull: true}, "0"},
		{Column{Name: names.Deferrals, Type: Int64(), NotNull: true}, "0"},
		{Column{Name: names.FirstAt, Type: Timestamp(), AllowCommitTimestamp: true}, ""},
		{Column{Name: names.SentAt, Type: Timestamp(), NotNull: true, AllowCommitTimestamp: true}, ""},
		{Column{Name: names.Priority, Type: Int64(), NotNull: true}, priorityDefault(t.Priorities)},
	}
	if names.Shard != "" {
		columns = append(columns, ownColumn{Column{Name: names.Shard, Type: Int64(), NotNull: true}, shardDefault(t.Shards)})
	}
	return columns
}

// Statements returns the DDL that creates the table and its indexes.
func (t QueueTable) Statements() []string {
	statements := []string{t.tableDDL(), t.indexDDL()}
	if t.OrderColumns > 0 {
		statements = append(statements, t.orderIndexDDL())
	}
	return statements
}

func (t QueueTable) tableDDL() string {
	q := t.Queue
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE %s (\n", quoteIdent(q.Name))
	for _, c := range q.KeyColumns {
		fmt.Fprintf(&b, "  %s,\n", c.DDL())
	}
	for _, c := range t.ownColumns() {
		fmt.Fprintf(&b, "  %s,\n", c.ddl())
	}
	fmt.Fprintf(&b, ") PRIMARY KEY (%s)", keyPartsDDL(q.KeyParts()))
	policy := q.RowDeletion
	if policy.Column == DeliverTimeColumn {
		policy.Column = t.Columns().DueTime
	}
	for _, clause := range []string{q.Interleave.DDL(), policy.DDL()} {
		if clause != "" {
			b.WriteString(",\n" + clause)
		}
	}
	return b.String()
}

func (t QueueTable) indexDDL() string {
	names := t.Columns()
	var columns []string
	for _, name := range []string{names.Shard, names.Priority, names.VisibleAt} {
		if name != "" {
			columns = append(columns, quoteIdent(name))
		}
	}
	return fmt.Sprintf("CREATE INDEX %s ON %s (%s)", quoteIdent(t.IndexName()), quoteIdent(t.Queue.Name), strings.Join(columns, ", "))
}

// orderIndexDDL puts the message in flight first: a NULL comes last where the
// order is descending.
func (t QueueTable) orderIndexDDL() string {
	names := t.Columns()
	parts := t.Queue.KeyParts()[:t.OrderColumns]
	for i := range parts {
		parts[i].Desc = false
	}
	parts = append(parts, KeyPart{Column: names.LeaseToken, Desc: true}, KeyPart{Column: names.DueTime})
	return fmt.Sprintf("CREATE INDEX %s ON %s (%s)", quoteIdent(t.OrderIndexName()), quoteIdent(t.Queue.Name), keyPartsDDL(parts))
}
