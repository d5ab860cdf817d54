package schema

import "fmt"

// Limits of Spanner that a definition can break; from its quotas page.
const (
	maxNameLength = 128
	maxKeyColumns = 16
	maxDays       = 1 << 31 // far beyond any real policy; keeps the arithmetic safe
)

// FieldError says which field of a definition cannot be used, with the value
// found there and why.
type FieldError struct {
	// Field is the path of the field, such as "KeyColumns[1].Type".
	Field string
	// Value is the value found there, as text.
	Value string
	// Reason says what is wrong with it and what is allowed.
	Reason string
}

func (e *FieldError) Error() string {
	return "schema: " + e.problem()
}

// problem is the error without the package's name in front.
func (e *FieldError) problem() string {
	return fmt.Sprintf("%s %q: %s", e.Field, e.Value, e.Reason)
}

func fieldErrorf(field, value, format string, args ...any) error {
	return &FieldError{Field: field, Value: value, Reason: fmt.Sprintf(format, args...)}
}

// receiveColumns are added to every row that RECEIVE returns; a key column of
// such a name would be there twice.
var receiveColumns = []string{
	"SpannerLeaseExpirationTimestamp", "SpannerLeaseToken", "SpannerLastBatchMessage",
}

// Validate returns nil if q is a definition that Spanner documents as valid,
// and otherwise a *FieldError for the first field that is not. What only the
// database can know (whether the parent table exists, whether a proto type is
// a message, whether an expression makes sense) is not looked at.
func (q Queue) Validate() error {
	if why := nameProblem(q.Name); why != "" {
		return fieldErrorf("Name", q.Name, "the queue's name %s", why)
	}
	if err := q.validateColumns(); err != nil {
		return err
	}
	if err := q.validatePayload(); err != nil {
		return err
	}
	if err := q.validateKey(); err != nil {
		return err
	}
	if err := q.Interleave.validate(q.Name); err != nil {
		return err
	}
	if err := q.validateRowDeletion(); err != nil {
		return err
	}
	if m := q.Options.ReceiveMode; m != "" && m != ReceiveModePull {
		return fieldErrorf("Options.ReceiveMode", m, "the only receive mode is %s", ReceiveModePull)
	}
	return nil
}

func (q Queue) validateColumns() error {
	if n := len(q.KeyColumns); n < 1 || n > maxKeyColumns {
		return fieldErrorf("KeyColumns", fmt.Sprint(n), "a queue has 1 to %d key columns", maxKeyColumns)
	}
	for i, c := range q.KeyColumns {
		field := fmt.Sprintf("KeyColumns[%d]", i)
		if err := c.validate(field); err != nil {
			return err
		}
		for _, earlier := range q.KeyColumns[:i] {
			if sameName(earlier.Name, c.Name) {
				return fieldErrorf(field+".Name", c.Name, "duplicate column: the name is taken by %s, and case does not matter", earlier.Name)
			}
		}
	}
	return nil
}

func (c Column) validate(field string) error {
	if why := identProblem(c.Name); why != "" {
		return fieldErrorf(field+".Name", c.Name, "a column's name %s", why)
	}
	switch {
	case sameName(c.Name, DeliverTimeColumn):
		return fieldErrorf(field+".Name", c.Name, "%s is added by the service and may not be declared", DeliverTimeColumn)
	case sameName(c.Name, PayloadColumn):
		return fieldErrorf(field+".Name", c.Name, "%s is the column of the message's body and cannot be part of the key", PayloadColumn)
	}
	for _, reserved := range receiveColumns {
		if sameName(c.Name, reserved) {
			return fieldErrorf(field+".Name", c.Name, "the name is reserved: RECEIVE adds a column %s to every row", reserved)
		}
	}
	if why := c.Type.problem(); why != "" {
		return fieldErrorf(field+".Type", c.Type.String(), "%s", why)
	}
	if why := c.Type.keyProblem(); why != "" {
		return fieldErrorf(field+".Type", c.Type.String(), "%s", why)
	}
	if c.AllowCommitTimestamp && c.Type.Kind != KindTimestamp {
		return fieldErrorf(field+".AllowCommitTimestamp", "true", "only a TIMESTAMP column can take the commit timestamp; %s is %s", c.Name, c.Type)
	}
	if c.AllowCommitTimestamp && c.Generated != "" {
		return fieldErrorf(field+".AllowCommitTimestamp", "true", "a generated column cannot take the commit timestamp")
	}
	if c.Generated != "" {
		if why := expressionProblem(c.Generated); why != "" {
			return fieldErrorf(field+".Generated", c.Generated, "%s", why)
		}
	}
	return nil
}

func (q Queue) validatePayload() error {
	if q.Payload == (Type{}) {
		return fieldErrorf("Payload", "", "a queue needs a Payload column of type BYTES, STRING, JSON or a proto type")
	}
	if why := q.Payload.problem(); why != "" {
		return fieldErrorf("Payload", q.Payload.String(), "%s", why)
	}
	if why := q.Payload.payloadProblem(); why != "" {
		return fieldErrorf("Payload", q.Payload.String(), "%s", why)
	}
	return nil
}

// validateKey checks that the primary key names every key column exactly once.
func (q Queue) validateKey() error {
	seen := make(map[string]bool, len(q.KeyColumns))
	parts := q.KeyParts()
	for i, p := range parts {
		field := fmt.Sprintf("PrimaryKey[%d].Column", i)
		if sameName(p.Column, PayloadColumn) || sameName(p.Column, DeliverTimeColumn) {
			return fieldErrorf(field, p.Column, "the column cannot be part of a queue's key")
		}
		c, ok := q.KeyColumn(p.Column)
		if !ok {
			return fieldErrorf(field, p.Column, "the queue declares no such column")
		}
		if c.Name != p.Column {
			return fieldErrorf(field, p.Column, "the column is spelled %s where it is declared; use that spelling", c.Name)
		}
		if seen[c.Name] {
			return fieldErrorf(field, p.Column, "the column is in the key twice")
		}
		seen[c.Name] = true
	}
	for i, c := range q.KeyColumns {
		if !seen[c.Name] {
			return fieldErrorf(fmt.Sprintf("KeyColumns[%d].Name", i), c.Name,
				"the column is not in the primary key; a queue has no columns but its key, Payload and DeliverTime")
		}
	}
	return nil
}

func (i Interleave) validate(self string) error {
	if i.Table == "" {
		if i != (Interleave{}) {
			return fieldErrorf("Interleave.Table", "", "InParent and OnDelete need a table to interleave in")
		}
		return nil
	}
	if why := nameProblem(i.Table); why != "" {
		return fieldErrorf("Interleave.Table", i.Table, "the parent's name %s", why)
	}
	if sameName(i.Table, self) {
		return fieldErrorf("Interleave.Table", i.Table, "a queue cannot be interleaved in itself")
	}
	if i.OnDelete != NoAction && i.OnDelete != Cascade {
		return fieldErrorf("Interleave.OnDelete", fmt.Sprint(int(i.OnDelete)), "must be NoAction or Cascade")
	}
	return nil
}

func (q Queue) validateRowDeletion() error {
	r := q.RowDeletion
	if r.Column == "" {
		if r.Days != 0 {
			return fieldErrorf("RowDeletion.Column", "", "a policy of %d days needs a TIMESTAMP column to count from", r.Days)
		}
		return nil
	}
	if r.Days < 0 || r.Days > maxDays {
		return fieldErrorf("RowDeletion.Days", fmt.Sprint(r.Days), "must be 0 to %d", maxDays)
	}
	if r.Column == DeliverTimeColumn {
		return nil
	}
	c, ok := q.KeyColumn(r.Column)
	switch {
	case !ok:
		return fieldErrorf("RowDeletion.Column", r.Column, "the queue has no such column; use a TIMESTAMP key column or %s", DeliverTimeColumn)
	case c.Name != r.Column:
		return fieldErrorf("RowDeletion.Column", r.Column, "the column is spelled %s where it is declared; use that spelling", c.Name)
	case c.Type.Kind != KindTimestamp:
		return fieldErrorf("RowDeletion.Column", r.Column, "a row's age is counted from a TIMESTAMP column; this one is %s", c.Type)
	}
	return nil
}
