package schema

// Attempts is the table that remembers, for one queue, how often the delivery
// of a message was started and how it went: a native queue shows no such count.
// It holds a row only for messages that may have been delivered more than once.
//
// The key is the queue's own key, so that a message is found by the key it came
// with; a key part may be NULL where the queue allows it. A row counts for one
// DeliverTime: a row that names another belongs to an earlier message of the
// same key and says nothing.
type Attempts struct {
	// Queue is the queue whose attempts are counted.
	Queue Queue
	// RetentionDays deletes rows so many days after their last change, for
	// messages that ended out of the processor's sight. 0 keeps them. It should
	// be longer than a message can live: a deleted row forgets its counts.
	RetentionDays int64
}

// AttemptsColumns are the names of an attempts table's columns besides the
// queue's key. They are the field names, with an underscore after those that
// the queue's key uses itself.
type AttemptsColumns struct {
	// DeliverTime TIMESTAMP: the delivery that the row counts for.
	DeliverTime string
	// Starts INT64: handlers started that have not (yet) reported an outcome.
	Starts string
	// Errors INT64: attempts that failed.
	Errors string
	// Deferrals INT64: times the message was postponed without having failed.
	Deferrals string
	// FirstAt and LastAt TIMESTAMP: first and last change of the row. Both
	// can take the commit timestamp.
	FirstAt, LastAt string
}

// TableName returns the name of the table: the queue's, with "Attempts" after
// it.
func (a Attempts) TableName() string { return a.Queue.Name + "Attempts" }

// Columns returns the names of the table's own columns.
func (a Attempts) Columns() AttemptsColumns {
	q := a.Queue
	return AttemptsColumns{
		DeliverTime: DeliverTimeColumn,
		Starts:      ownName(q, "Starts"),
		Errors:      ownName(q, "Errors"),
		Deferrals:   ownName(q, "Deferrals"),
		FirstAt:     ownName(q, "FirstAt"),
		LastAt:      ownName(q, "LastAt"),
	}
}

// Validate returns nil if the queue is valid and the table can be made for it,
// and otherwise an error that wraps a *FieldError.
func (a Attempts) Validate() error {
	return validateQueueTable(a.Queue, a.TableName(), a.RetentionDays)
}

// Statements returns the DDL that creates the table: one statement.
func (a Attempts) Statements() []string {
	names := a.Columns()
	t := table{
		name: a.TableName(),
		columns: append(keyColumnsOf(a.Queue),
			Column{Name: names.DeliverTime, Type: Timestamp(), NotNull: true},
			Column{Name: names.Starts, Type: Int64(), NotNull: true},
			Column{Name: names.Errors, Type: Int64(), NotNull: true},
			Column{Name: names.Deferrals, Type: Int64(), NotNull: true},
			Column{Name: names.FirstAt, Type: Timestamp(), NotNull: true, AllowCommitTimestamp: true},
			Column{Name: names.LastAt, Type: Timestamp(), NotNull: true, AllowCommitTimestamp: true},
		),
		key: a.Queue.KeyParts(),
	}
	if a.RetentionDays > 0 {
		t.rowDeletion = RowDeletion{Column: names.LastAt, Days: a.RetentionDays}
	}
	return []string{t.ddl()}
}
