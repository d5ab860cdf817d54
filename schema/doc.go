// Package schema holds, as Go values, what stands in the database for
// spanqueue: queues, and the tables that belong to them.
//
// # Terms
//
// A definition is a Go value: Queue, QueueTable, Attempts, DeadLetters,
// Operations, or SQL for the application's own tables. Its shape is what it
// makes stand in the database: columns, types, key, parent, policies. DDL turns
// a definition into text; ParseStatement turns the text of a queue back into
// the definition, ParseQueueTable that of a queue table. An Element is whatever
// Apply can compare with the database and create: all of these, and other
// packages' own.
//
// # Who decides
//
// The database. Validate knows the documented rules and refuses early and with
// a reason, but passing it is no promise: a parent table may be missing, an
// expression may not make sense. The shape of what exists is read from the
// database's own DDL, never remembered.
//
// # States
//
// To Apply each object is missing, present, or of another shape.
//
//	missing        created, in one batch, after what it needs
//	present        left alone; if all are, nothing is sent
//	another shape  reported as *ShapeError, and then nothing is created
//
// No object is ever altered or dropped by this package: messages may be in it.
//
// # Failure rules
//
// An invalid definition is refused before the database is asked, with a
// *FieldError: field, value, bounds. Text that is no queue statement is a
// *ParseError: line, column, what was expected and found. A refusal of the
// database sends Apply to look again: what another process has created
// meanwhile is present, what may pass (a database busy with a write or another
// change, a lost answer) is tried again for a bounded time, and all else is
// returned, wrapped.
//
// # Where the documentation is silent
//
// Payload may stand anywhere among the columns; clauses after the key come in
// the documented order; column names of the rows that RECEIVE returns are
// reserved; a row deletion policy may count from DeliverTime. The options of a
// queue are compared only where the definition sets them: disable_send and
// disable_delivery are switches for an operator, and a program that starts
// while delivery is paused must not fail for it.
//
// # Dialect
//
// GoogleSQL. Names are compared as SQL compares them, without regard to case,
// and keep the spelling in which they were declared.
package schema
