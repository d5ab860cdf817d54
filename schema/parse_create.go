package schema

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cloudspannerecosystem/memefish/token"
)

// createParser reads CREATE QUEUE. It remembers where each field of the
// definition stood, so that what Validate finds is reported at its place.
type createParser struct {
	*parser
	queue      Queue
	where      map[string]token.Pos // by path of the field
	hasPayload bool
}

// createQueue reads what follows CREATE QUEUE.
func (p *parser) createQueue() (Statement, error) {
	c := &createParser{parser: p, where: map[string]token.Pos{}}
	ifNotExists := p.accept("IF", "NOT", "EXISTS")
	var err error
	if c.queue.Name, c.where["Name"], err = p.objectName("the queue's name"); err != nil {
		return nil, err
	}
	for _, part := range []func() error{c.columns, c.primaryKey, c.clauses} {
		if err := part(); err != nil {
			return nil, err
		}
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &CreateQueue{Queue: c.queue, IfNotExists: ifNotExists}, nil
}

// columns reads the list in parentheses; a comma after the last column is
// allowed, as Google's own samples have it.
func (c *createParser) columns() error {
	c.where["KeyColumns"] = c.at(0).Pos
	if err := c.expect("("); err != nil {
		return err
	}
	for !c.isWord(0, ")") {
		if err := c.column(); err != nil {
			return err
		}
		if c.accept(",") {
			continue
		}
		if !c.isWord(0, ")") {
			return c.expected(", or ) after the column")
		}
	}
	return c.expect(")")
}

func (c *createParser) column() error {
	name, pos, err := c.ident("a column's name")
	if err != nil {
		return err
	}
	if strings.EqualFold(name, PayloadColumn) {
		return c.payload(pos)
	}
	field := fmt.Sprintf("KeyColumns[%d]", len(c.queue.KeyColumns))
	c.where[field], c.where[field+".Type"] = pos, c.at(0).Pos
	col := Column{Name: name}
	if col.Type, err = c.columnType("key column " + name); err != nil {
		return err
	}
	col.NotNull = c.accept("NOT", "NULL")
	if c.accept("AS") {
		c.where[field+".Generated"] = c.at(0).Pos
		if col.Generated, err = c.expression(); err != nil {
			return err
		}
		if err := c.expect("STORED"); err != nil {
			return err
		}
	}
	col.Hidden = c.accept("HIDDEN")
	c.where[field+".AllowCommitTimestamp"] = c.at(0).Pos
	if col.AllowCommitTimestamp, err = c.columnOptions(); err != nil {
		return err
	}
	c.queue.KeyColumns = append(c.queue.KeyColumns, col)
	return nil
}

func (c *createParser) payload(pos token.Pos) error {
	if c.hasPayload {
		return c.errorAt(pos, "duplicate column: %s is declared twice", PayloadColumn)
	}
	c.hasPayload, c.where["Payload"] = true, c.at(0).Pos
	var err error
	if c.queue.Payload, err = c.columnType(PayloadColumn); err != nil {
		return err
	}
	if !c.accept("NOT", "NULL") {
		return c.expected("NOT NULL after the type of " + PayloadColumn + ", which may not be nullable")
	}
	if c.isWord(0, "AS") || c.isWord(0, "DEFAULT") {
		return c.errorAt(c.at(0).Pos, "%s is what the sender sends: it can be neither generated nor have a default", PayloadColumn)
	}
	c.queue.PayloadHidden = c.accept("HIDDEN")
	optionsPos := c.at(0).Pos
	commitTimestamp, err := c.columnOptions()
	if err != nil {
		return err
	}
	if commitTimestamp {
		return c.errorAt(optionsPos, "allow_commit_timestamp needs a TIMESTAMP column; %s is %s", PayloadColumn, c.queue.Payload)
	}
	return nil
}

// primaryKey reads PRIMARY KEY (...). Parts take the spelling of the columns
// they name, since SQL does not tell Id from ID.
func (c *createParser) primaryKey() error {
	if err := c.expect("PRIMARY", "KEY", "("); err != nil {
		return err
	}
	c.queue.PrimaryKey = []KeyPart{}
	for !c.isWord(0, ")") {
		field := fmt.Sprintf("PrimaryKey[%d].Column", len(c.queue.PrimaryKey))
		name, pos, err := c.ident("a key column's name")
		if err != nil {
			return err
		}
		c.where[field] = pos
		part := KeyPart{Column: c.queue.spelling(name)}
		switch {
		case c.accept("DESC"):
			part.Desc = true
		case c.accept("ASC"):
		}
		c.queue.PrimaryKey = append(c.queue.PrimaryKey, part)
		if !c.accept(",") {
			break
		}
	}
	return c.expect(")")
}

// clauses reads what may follow the key, each after a comma and in this order.
func (c *createParser) clauses() error {
	var err error
	if c.isWord(0, ",") && c.isWord(1, "INTERLEAVE") {
		c.next()
		if c.queue.Interleave, c.where["Interleave"], err = c.interleave(); err != nil {
			return err
		}
	}
	if c.isWord(0, ",") && c.isWord(1, "ROW") {
		c.next()
		if c.queue.RowDeletion, c.where["RowDeletion"], err = c.rowDeletion(); err != nil {
			return err
		}
		c.queue.RowDeletion.Column = c.queue.spelling(c.queue.RowDeletion.Column)
	}
	if c.isWord(0, ",") && c.isWord(1, "OPTIONS") {
		c.next()
		c.where["Options"] = c.at(0).Pos
		set, err := c.queueOptions()
		if err != nil {
			return err
		}
		c.queue.Options = set.apply(c.queue.Options)
	}
	if c.accept(",") {
		return c.expected("INTERLEAVE IN, ROW DELETION POLICY or OPTIONS, each at most once and in this order")
	}
	return nil
}

// validate reports what Validate finds, at the place where it was read.
func (c *createParser) validate() error {
	if !c.hasPayload {
		return c.errorAt(c.where["KeyColumns"], "queue %s has no %s column; it needs one, NOT NULL, of type BYTES, STRING, JSON or a proto type",
			c.queue.Name, PayloadColumn)
	}
	err := c.queue.Validate()
	if err == nil {
		return nil
	}
	var field *FieldError
	if !errors.As(err, &field) {
		return err
	}
	return c.fieldError(field)
}

// fieldError places a *FieldError at its field, or at the closest enclosing
// field that stood in the text.
func (c *createParser) fieldError(field *FieldError) error {
	path := field.Field
	for {
		if pos, ok := c.where[path]; ok {
			line, column := lineColumn(c.sql, int(pos))
			return &ParseError{Line: line, Column: column, Reason: field.problem(), Field: field}
		}
		dot := strings.LastIndexByte(path, '.')
		if dot < 0 {
			line, column := lineColumn(c.sql, int(c.where["Name"]))
			return &ParseError{Line: line, Column: column, Reason: field.problem(), Field: field}
		}
		path = path[:dot]
	}
}
