package schema

import (
	"fmt"
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"
	"github.com/cloudspannerecosystem/memefish/token"
)

// ParseQueueTable reads the CREATE TABLE statement of a queue table and the
// CREATE INDEX statements of its indexes, in any order: the inverse of
// Statements. Without the index that tells whose turn it is, messages are not
// ordered; other indexes are not looked at. PrimaryKey is never nil in the
// result.
//
// It wants what the library works with, the columns with their types and NULLs
// and the two numbers that are told by defaults, and leaves it to Apply to hold
// everything else against a definition. The error for a table that is no queue
// table says what is missing.
func ParseQueueTable(sql string, indexes ...string) (QueueTable, error) {
	ddl, err := parseDDL(sql)
	if err != nil {
		return QueueTable{}, fmt.Errorf("schema: queue table: %w", err)
	}
	create, ok := ddl.(*ast.CreateTable)
	if !ok {
		return QueueTable{}, fmt.Errorf("schema: queue table: expected CREATE TABLE, found %q", firstLine(sql))
	}
	t, err := readQueueTable(sql, create)
	for _, index := range indexes {
		if err == nil {
			err = t.readOrder(index)
		}
	}
	if err == nil {
		err = t.Validate()
	}
	if err != nil {
		return QueueTable{}, fmt.Errorf("schema: table %s is no queue table: %w", pathName(create.Name), err)
	}
	return t, nil
}

func readQueueTable(sql string, create *ast.CreateTable) (QueueTable, error) {
	t := QueueTable{Queue: Queue{Name: pathName(create.Name), PrimaryKey: []KeyPart{}}}
	q := &t.Queue
	columns := make(map[string]*ast.ColumnDef, len(create.Columns))
	for _, c := range create.Columns {
		columns[strings.ToLower(c.Name.Name)] = c
	}
	inKey := make(map[string]bool)
	for _, part := range create.PrimaryKeys {
		q.PrimaryKey = append(q.PrimaryKey, KeyPart{Column: part.Name.Name, Desc: part.Dir == ast.DirectionDesc})
		inKey[strings.ToLower(part.Name.Name)] = true
	}
	for _, def := range create.Columns {
		if def.PrimaryKey {
			q.PrimaryKey = append(q.PrimaryKey, KeyPart{Column: def.Name.Name})
			inKey[strings.ToLower(def.Name.Name)] = true
		}
		if !inKey[strings.ToLower(def.Name.Name)] {
			continue
		}
		c, err := readColumn(sql, def)
		if err != nil {
			return t, err
		}
		q.KeyColumns = append(q.KeyColumns, c)
	}
	for i, part := range q.PrimaryKey {
		q.PrimaryKey[i].Column = q.spelling(part.Column)
	}
	if err := t.readOwnColumns(sql, columns); err != nil {
		return t, err
	}
	if c := create.Cluster; c != nil {
		q.Interleave = Interleave{Table: pathName(c.TableName), InParent: c.Enforced, OnDelete: onDeleteOf(c.OnDelete)}
	}
	return t, t.readPolicy(create)
}

// readColumn reads a column of the table by the grammar of a queue's.
func readColumn(sql string, def *ast.ColumnDef) (Column, error) {
	c := Column{Name: def.Name.Name, NotNull: def.NotNull, Hidden: !def.Hidden.Invalid()}
	p := newParser(sql[def.Type.Pos():def.Type.End()])
	var err error
	if c.Type, err = p.columnType(def.Name.Name); err != nil {
		return c, fmt.Errorf("column %s: %w", c.Name, err)
	}
	if g, ok := def.DefaultSemantics.(*ast.GeneratedColumnExpr); ok {
		c.Generated = sql[g.Expr.Pos():g.Expr.End()]
	}
	var options shape
	addOptions(&options, def.Options)
	for _, o := range options {
		if o.what == "option allow_commit_timestamp" {
			c.AllowCommitTimestamp = true
		}
	}
	return c, nil
}

// readOwnColumns finds the table's own columns and the two numbers.
func (t *QueueTable) readOwnColumns(sql string, columns map[string]*ast.ColumnDef) error {
	payload, ok := columns[strings.ToLower(PayloadColumn)]
	if !ok {
		return fmt.Errorf("it has no column %s", PayloadColumn)
	}
	c, err := readColumn(sql, payload)
	if err != nil {
		return err
	}
	t.Queue.Payload, t.Queue.PayloadHidden = c.Type, c.Hidden
	if _, ok := columns[strings.ToLower(ownName(t.Queue, "Shard"))]; ok {
		t.Shards = MaxShards // it has the column; the number comes from its default
	}
	for _, want := range t.ownColumns() {
		def, ok := columns[strings.ToLower(want.Name)]
		if !ok {
			return fmt.Errorf("it has no column %s", want.Name)
		}
		found, err := readColumn(sql, def)
		if err != nil {
			return err
		}
		if found.Type != want.Type || found.NotNull != want.NotNull {
			return fmt.Errorf("column %s: want %s, found %s", want.Name, want.DDL(), found.DDL())
		}
	}
	names := t.Columns()
	for _, n := range []struct {
		column  string
		into    *int
		written func(int) string
	}{{names.Priority, &t.Priorities, priorityDefault}, {names.Shard, &t.Shards, shardDefault}} {
		if n.column == "" {
			continue
		}
		if *n.into, err = readCount(sql, columns[strings.ToLower(n.column)], n.written); err != nil {
			return err
		}
	}
	return nil
}

// readCount reads the number that a column's default tells: the last in it.
func readCount(sql string, def *ast.ColumnDef, written func(int) string) (int, error) {
	text := ""
	if d, ok := def.DefaultSemantics.(*ast.ColumnDefaultExpr); ok {
		text = sql[d.Expr.Pos():d.Expr.End()]
	}
	p := newParser(text)
	count := 0
	for t := p.at(0); t.Kind != token.TokenEOF && t.Kind != token.TokenBad; t = p.at(0) {
		if t.Kind != token.TokenInt {
			p.next()
			continue
		}
		n, err := p.integer("a number")
		if err != nil {
			return 0, err
		}
		count = int(n)
	}
	if plainExpression(text) != plainExpression(written(count)) {
		return 0, fmt.Errorf("column %s: want DEFAULT (%s), with the right number, found DEFAULT (%s)", def.Name.Name, written(MaxPriorities), text)
	}
	return count, nil
}

func (t *QueueTable) readPolicy(create *ast.CreateTable) error {
	if create.RowDeletionPolicy == nil {
		return nil
	}
	policy := create.RowDeletionPolicy.RowDeletionPolicy
	p := newParser(policy.NumDays.Value)
	days, err := p.integer("a number of days")
	if err != nil {
		return err
	}
	column := t.Queue.spelling(policy.ColumnName.Name)
	if sameName(column, t.Columns().DueTime) {
		column = DeliverTimeColumn
	}
	t.Queue.RowDeletion = RowDeletion{Column: column, Days: days}
	return nil
}

// readOrder reads the ordering key from the statement of the index that tells
// whose turn it is, if this is the one.
func (t *QueueTable) readOrder(sql string) error {
	ddl, err := parseDDL(sql)
	if err != nil {
		return err
	}
	create, ok := ddl.(*ast.CreateIndex)
	if !ok || !sameName(pathName(create.Name), t.OrderIndexName()) || !sameName(pathName(create.TableName), t.Queue.Name) {
		return nil
	}
	n := len(create.Keys) - 2
	if n < 1 || n >= len(t.Queue.KeyParts()) {
		return fmt.Errorf("index %s tells no order: %s", t.OrderIndexName(), firstLine(sql))
	}
	t.OrderColumns = n
	want, err := wantedObject(t.orderIndexDDL())
	if err != nil {
		return err
	}
	if differ := want.compareWith(object{kind: want.kind, name: want.name, sql: sql}); len(differ) > 0 {
		return fmt.Errorf("index %s: %s", want.name, strings.Join(differ, "; "))
	}
	return nil
}
