package processor

// Outcome is how a delivery ended. It is a label: nothing is decided by it.
type Outcome int

const (
	// Done: the handler's transaction committed.
	Done Outcome = iota
	// Duplicate: the message was gone when the transaction started; the handler did not run, or what it did was undone.
	Duplicate
	// SettledElsewhere: the outcome of a commit was unknown, the message turned out to be settled, and the lease may have
	// ended before that was seen, so it may have been another holder.
	SettledElsewhere
	// Retried: the handler failed and the message was sent again for later.
	Retried
	// Snoozed: the handler asked for a later time.
	Snoozed
	// Deferred: a Call handler had deferred the message and did not end in its time; the message comes again.
	Deferred
	// DeadLettered: the message was moved to the dead letters.
	DeadLettered
	// Discarded: the handler gave the message up.
	Discarded
	// LeaseLost: a Call handler lost its lease, before or while it ran. Somebody else has the message, or will have it.
	LeaseLost
	// Interrupted: our stop or the database ended the delivery before it could fail or succeed. The message is left to
	// its lease; no attempt is used, but when the database has refused what the handler's error asked for.
	Interrupted
	// Unresolved: what became of a commit could not be learned within the bound. The message is left to its lease.
	Unresolved
	numOutcomes
)

var outcomeNames = [numOutcomes]string{
	Done:             "done",
	Duplicate:        "duplicate",
	SettledElsewhere: "settled elsewhere",
	Retried:          "retried",
	Snoozed:          "snoozed",
	Deferred:         "deferred",
	DeadLettered:     "dead-lettered",
	Discarded:        "discarded",
	LeaseLost:        "lease lost",
	Interrupted:      "interrupted",
	Unresolved:       "unresolved",
}

// String returns the outcome as figures and logs have it.
func (o Outcome) String() string {
	if o < 0 || o >= numOutcomes {
		return "unknown outcome"
	}
	return outcomeNames[o]
}

// isFailure says whether the handler failed. Everything else is either done or nobody's fault.
func (o Outcome) isFailure() bool { return o == Retried || o == DeadLettered }
