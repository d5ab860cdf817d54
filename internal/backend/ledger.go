package backend

import (
	"context"
	"time"
)

// Record is what is known of a message's earlier deliveries.
type Record struct {
	// Starts counts the starts of the handler that have reported no outcome, the present one not included.
	Starts int
	// Failures counts the attempts that ended with an error.
	Failures int
	// Deferrals counts the times that the message was postponed without having failed.
	Deferrals int
	// First is the database's stamp of the first start or failure that was recorded; zero when there is none.
	First time.Time
}

// DeadLetter is what is kept of a message that is given up, beside the message itself.
type DeadLetter struct {
	Reason   string
	Error    string
	Attempts int
	First    time.Time // as in Record; zero when the only attempt is the present one
	Handler  string
}

// Ledger is the ability of a queue to remember attempts longer than a process lives, and to keep what is given up. A
// queue that does not have it (found by type assertion) is counted in memory and retried for ever.
type Ledger interface {
	// CheckLedger says what is missing in the database for the other methods, if anything is.
	CheckLedger(context.Context) error
	// Begin counts a start for each of the deliveries, in one transaction, and returns what was known before it. A record
	// counts for one delivery; what is on record for another DeliverTime of the same key is not inherited. When the
	// outcome of its commit is unknown and the function runs again, it does not count a start twice. With an error that
	// leaves open whether the starts were counted it returns the records too; without them none was counted.
	Begin(context.Context, []Delivery) ([]Record, error)
	// TakeBack undoes Begin for a delivery whose start was nobody's attempt: it was interrupted before it had an outcome.
	// The delivery's Record is what Begin returned for it: when the record on file shows no more starts than that, the
	// commit never landed, and nothing is taken back from others.
	TakeBack(context.Context, Delivery) error
}

// Prioritizer is the ability of a queue whose messages have priorities, found by type assertion. Its table of dead letters
// keeps them.
type Prioritizer interface {
	// PriorityCount is how many priorities there are, at least 1.
	PriorityCount() int
}

// Forgetter is what every Tx on a queue with a Ledger can do besides, in the transaction that acknowledges the delivery.
type Forgetter interface {
	// Forget removes the record of a delivery.
	Forget(context.Context, Delivery) error
}

// LedgerTx is what a Tx of a queue with a Ledger can do besides.
type LedgerTx interface {
	Forgetter
	// Keep writes the record for the message as it was sent again: it counts for the new DeliverTime.
	Keep(ctx context.Context, resent Outgoing, r Record) error
	// Bury writes the message into the table of dead letters and removes its record.
	Bury(context.Context, Delivery, DeadLetter) error
}
