// Package schema holds, as Go values, what stands in the database for
// spanqueue: queues, and the tables that belong to them.
//
// # Terms
//
// A definition is a Go value, such as Queue. Its shape is what
// it makes stand in the database: columns, types, key, parent, policies,
// options. DDL turns a definition into text and ParseStatement turns the text
// of a queue back into the definition.
//
// # Who decides
//
// The database. Validate knows the documented rules and refuses early and with
// a reason, but passing it is no promise: a parent table may be missing, an
// expression may not make sense.
//
// # Dialect
//
// GoogleSQL. Names are compared as SQL compares them, without regard to case,
// and keep the spelling in which they were declared.
package schema
