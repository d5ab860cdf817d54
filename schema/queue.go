package schema

// Names of the two columns that every queue has besides its key.
const (
	// PayloadColumn is declared by the owner of the queue.
	PayloadColumn = "Payload"
	// DeliverTimeColumn is added by the service and may not be declared.
	DeliverTimeColumn = "DeliverTime"
)

// Queue is the definition of a Spanner queue. Validate says what a usable one
// needs: a name, at least one key column and a payload type; everything else
// has a useful zero value.
type Queue struct {
	// Name is the queue's name. Queues cannot be in a named schema, so it has
	// no dot.
	Name string
	// KeyColumns are the columns of the primary key, in the order in which
	// they are declared. A queue has no columns but these and the payload.
	KeyColumns []Column
	// Payload is the type of the Payload column: BYTES, STRING, JSON or a
	// proto message. The column is always NOT NULL.
	Payload Type
	// PayloadHidden leaves Payload out of SELECT *.
	PayloadHidden bool
	// PrimaryKey gives order and direction of the key; it names every key
	// column once. Nil means the key columns as declared, ascending. Code that
	// reads a definition should ask KeyParts, which answers the same for both.
	PrimaryKey []KeyPart
	// Interleave places the queue's rows beside those of a table. The zero
	// value is a queue that stands alone.
	Interleave Interleave
	// RowDeletion deletes old messages, handled or not. The zero value keeps
	// them until they are acknowledged.
	RowDeletion RowDeletion
	// Options are the queue's own options.
	Options QueueOptions
}

// Column is one key column of a queue.
type Column struct {
	Name string
	Type Type
	// NotNull refuses NULL. Without it the key part may be NULL, which SQL
	// then matches with IS NULL only.
	NotNull bool
	// Generated is the expression of a stored generated column, without the
	// parentheses around it and kept as it was written. Empty: the sender
	// gives the value.
	Generated string
	// Hidden leaves the column out of SELECT *.
	Hidden bool
	// AllowCommitTimestamp lets a TIMESTAMP column take the time of the commit
	// that writes it.
	AllowCommitTimestamp bool
}

// KeyPart is one part of a primary key.
type KeyPart struct {
	// Column is the name of a key column, spelled as declared.
	Column string
	Desc   bool
}

// OnDelete says what happens to a queue's rows when the row of the parent
// table is deleted.
type OnDelete int

const (
	// NoAction refuses to delete a parent row that has messages.
	NoAction OnDelete = iota
	// Cascade deletes the messages with the parent row.
	Cascade
)

// String returns the action as DDL writes it.
func (d OnDelete) String() string {
	if d == Cascade {
		return "CASCADE"
	}
	return "NO ACTION"
}

// Interleave places rows beside those of another table.
type Interleave struct {
	// Table is the table to interleave in; its key must be the first part of
	// this key. Empty: not interleaved.
	Table string
	// InParent demands that the parent row exists (INTERLEAVE IN PARENT).
	InParent bool
	// OnDelete applies to INTERLEAVE IN PARENT.
	OnDelete OnDelete
}

// RowDeletion is a row deletion policy (a time to live).
type RowDeletion struct {
	// Column is the TIMESTAMP column that a row's age is counted from. Empty:
	// no policy.
	Column string
	// Days is the age in days after which a row may be deleted.
	Days int64
}

// QueueOptions are the options of a queue. The zero value is what a queue
// without an OPTIONS clause has.
type QueueOptions struct {
	// ReceiveMode is "PULL" or empty; the two mean the same, there is no other
	// mode.
	ReceiveMode string
	// DisableSend refuses new messages.
	DisableSend bool
	// DisableDelivery holds messages back from receivers.
	DisableDelivery bool
	// LocalityGroup is the locality group that stores the queue.
	LocalityGroup string
}

// ReceiveModePull is the only receive mode there is.
const ReceiveModePull = "PULL"

// KeyParts returns the primary key: PrimaryKey, or when that is nil the key
// columns as declared, ascending. The caller may keep and change the slice.
func (q Queue) KeyParts() []KeyPart {
	if q.PrimaryKey != nil {
		return append([]KeyPart(nil), q.PrimaryKey...)
	}
	parts := make([]KeyPart, len(q.KeyColumns))
	for i, c := range q.KeyColumns {
		parts[i] = KeyPart{Column: c.Name}
	}
	return parts
}

// KeyColumn returns the key column of that name; case does not matter, as in
// SQL.
func (q Queue) KeyColumn(name string) (Column, bool) {
	for _, c := range q.KeyColumns {
		if sameName(c.Name, name) {
			return c, true
		}
	}
	return Column{}, false
}

// Statements returns the DDL that creates the queue: one statement.
func (q Queue) Statements() []string { return []string{q.DDL()} }

// spelling returns the queue's own spelling of a column's name, or the name as
// it is if the queue has no such column.
func (q Queue) spelling(name string) string {
	if c, ok := q.KeyColumn(name); ok {
		return c.Name
	}
	for _, own := range []string{DeliverTimeColumn, PayloadColumn} {
		if sameName(name, own) {
			return own
		}
	}
	return name
}
