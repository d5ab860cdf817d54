package schema

import "fmt"

// DeadLetters is the table that keeps the messages of one queue that were given
// up, with their bytes and the reason.
//
// The key is the queue's own key and then the time of death, since a key can be
// sent again and die again. A key part may be NULL where the queue allows it.
type DeadLetters struct {
	// Queue is the queue whose messages are kept. It may have 15 key columns at
	// most: the table's key has one more, and 16 are allowed.
	Queue Queue
	// RetentionDays deletes a message so many days after its death. 0 keeps
	// dead letters for ever.
	RetentionDays int64
	// Priorities is that of the QueueTable. Above 1 the table keeps each
	// message's priority, so that a message that is redriven has its own again.
	// 0 or 1: no such column; queues of the service have no priorities.
	Priorities int
}

// DeadLetterColumns are the names of a dead-letter table's columns besides the
// queue's key. They are the field names, with an underscore after those that
// the queue's key uses itself.
type DeadLetterColumns struct {
	// DeadAt TIMESTAMP, last part of the key: when the message was given up.
	// It can take the commit timestamp.
	DeadAt string
	// Payload, of the queue's own type: the message as it was sent.
	Payload string
	// DeliverTime TIMESTAMP: the delivery that was the last.
	DeliverTime string
	// Reason STRING: why it was given up, in one of a few fixed words.
	Reason string
	// Error STRING, may be NULL: the text of the last error.
	Error string
	// Attempts INT64: failed attempts and starts without an outcome.
	Attempts string
	// FirstAt and LastAt TIMESTAMP, may be NULL: first and last attempt that is
	// known of. Both can take the commit timestamp.
	FirstAt, LastAt string
	// Handler STRING, may be NULL: the handler that had the message last.
	Handler string
	// Priority INT64, may be NULL, which is 0: the message's priority. Empty:
	// the table has no such column.
	Priority string
}

// TableName returns the name of the table: the queue's, with "DeadLetters"
// after it.
func (d DeadLetters) TableName() string { return d.Queue.Name + "DeadLetters" }

// Columns returns the names of the table's own columns.
func (d DeadLetters) Columns() DeadLetterColumns {
	q := d.Queue
	names := DeadLetterColumns{
		DeadAt:      ownName(q, "DeadAt"),
		Payload:     PayloadColumn,
		DeliverTime: DeliverTimeColumn,
		Reason:      ownName(q, "Reason"),
		Error:       ownName(q, "Error"),
		Attempts:    ownName(q, "Attempts"),
		FirstAt:     ownName(q, "FirstAt"),
		LastAt:      ownName(q, "LastAt"),
		Handler:     ownName(q, "Handler"),
	}
	if d.Priorities > 1 {
		names.Priority = ownName(q, "Priority")
	}
	return names
}

// Validate returns nil if the queue is valid and the table can be made for it,
// and otherwise an error that wraps a *FieldError.
func (d DeadLetters) Validate() error {
	if err := validateQueueTable(d.Queue, d.TableName(), d.RetentionDays); err != nil {
		return err
	}
	if n := len(d.Queue.KeyColumns); n >= maxKeyColumns {
		return fieldErrorf("Queue.KeyColumns", fmt.Sprint(n),
			"a dead-letter table's key has one column more than the queue's, and %d are allowed", maxKeyColumns)
	}
	if d.Priorities < 0 || d.Priorities > MaxPriorities {
		return fieldErrorf("Priorities", fmt.Sprint(d.Priorities), "must be 0 to %d", MaxPriorities)
	}
	return nil
}

// Statements returns the DDL that creates the table: one statement.
func (d DeadLetters) Statements() []string {
	names := d.Columns()
	t := table{
		name: d.TableName(),
		columns: append(keyColumnsOf(d.Queue),
			Column{Name: names.DeadAt, Type: Timestamp(), NotNull: true, AllowCommitTimestamp: true},
			Column{Name: names.Payload, Type: d.Queue.Payload, NotNull: true},
			Column{Name: names.DeliverTime, Type: Timestamp(), NotNull: true},
			Column{Name: names.Reason, Type: String(Max), NotNull: true},
			Column{Name: names.Error, Type: String(Max)},
			Column{Name: names.Attempts, Type: Int64(), NotNull: true},
			Column{Name: names.FirstAt, Type: Timestamp(), AllowCommitTimestamp: true},
			Column{Name: names.LastAt, Type: Timestamp(), AllowCommitTimestamp: true},
			Column{Name: names.Handler, Type: String(Max)},
		),
		key: append(d.Queue.KeyParts(), KeyPart{Column: names.DeadAt}),
	}
	if names.Priority != "" { // the last, where ALTER TABLE would put it
		t.columns = append(t.columns, Column{Name: names.Priority, Type: Int64()})
	}
	if d.RetentionDays > 0 {
		t.rowDeletion = RowDeletion{Column: names.DeadAt, Days: d.RetentionDays}
	}
	return []string{t.ddl()}
}
