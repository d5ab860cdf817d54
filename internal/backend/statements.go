package backend

import (
	"context"

	"cloud.google.com/go/spanner"
)

// Statements is the ability of a queue to acknowledge by SQL alone, in transactions that are not of Google's client, found
// by type assertion.
type Statements interface {
	// CheckStatements says why this queue cannot be acknowledged by one statement, if it cannot.
	CheckStatements() error
	// AckStatement returns the statement that takes the delivery out. Where the delivery is not there any more it fails with
	// codes.OutOfRange.
	AckStatement(Delivery) (spanner.Statement, error)
	// ForgetStatement returns the statement that removes the delivery's record, for queues that keep records apart from the
	// messages; false for the others.
	ForgetStatement(Delivery) (spanner.Statement, bool)
}

// Aborter is the ability of a Tx that is not of Google's client to tell whether the database has aborted it, found by type
// assertion.
type Aborter interface {
	Aborted(context.Context) bool
}
