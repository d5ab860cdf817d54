// Package processor runs a handler for every message of a queue, so that what a message stands for takes effect once.
//
// # The promise
//
// A message sent in a transaction that commits is handled until its effect has been committed once. The effect and the
// acknowledgement are one commit: the library acknowledges first, inside the handler's own transaction and out of the
// handler's reach, then calls the handler, then commits. A second holder of the same message, whoever it is, finds it
// gone, and everything that it wrote is rolled back.
//
// # What it does not promise
//
// The handler may run several times before one of its runs commits: the database aborts transactions, leases end,
// processes die. Everything it does through its transaction is undone with a run that does not commit; what it does
// outside (a mail, a counter, another database, a transaction of its own) is not.
//
// # A message's way, and the files to follow it by
//
//	fetch    the receiver hands out a message for each free slot           run.go, package lease
//	track    what is being handled, for the stop                           running.go
//	execute  acknowledge, call the handler, commit                         execute.go, tx.go, call.go, invoke.go
//	settle   find out what became of the transaction, whatever was lost    package internal/settle
//	fate     what a handler's error asks for: retry, snooze, discard       fate.go, finish.go
//
// # Outcomes
//
// Every delivery ends with one Outcome. Done, Duplicate and SettledElsewhere mean that the message has been taken care of;
// Retried, Snoozed and Deferred that it comes again at a time of our choice; DeadLettered and Discarded that it was given
// up. Interrupted, LeaseLost and Unresolved leave it to its lease: somebody gets it when that has ended, and the guard
// decides whatever was left open.
//
// # Attempts
//
// A queue does not show how often it delivered a message. A record per message does (schema.Attempts), written only when
// the message may have been delivered before: a lease's length or more after its due time, by the database's own stamps,
// or when it was sent again by us. Fresh messages cost nothing extra. A start is counted before the handler is started, so
// that a message that kills its process is found out. Not attempts: our stop, aborts by the database, a lease lost before
// an outcome, a snooze. A start may be counted although the handler was not reached; one that took place is missed at most
// for the first delivery.
//
// # Who decides
//
// The database. An outcome is a label for people; no step is taken because of one.
//
// # Contexts
//
// A handler's context is a child of its transaction's context, which makes Google's client refuse a second transaction
// opened through it. It ends at HandlerTimeout (cause ErrHandlerTimeout) and when a stop has lasted for DrainTimeout (cause
// ErrDrainTimeout), never at the stop itself. Acknowledgement, commit and probes run on a context that outlives the stop:
// finished work is committed.
package processor
