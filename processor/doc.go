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
// an outcome, a snooze. A retry or snooze that the database refuses, as a queue with disable_send does, counts as a start
// without an outcome: otherwise its message would come again for ever. A start may be counted although the handler was not
// reached; one that took place is missed at most for the first delivery. A start whose count was lost on the way is not
// carried out, and is taken back if it had been counted: the count is wrong, by one, only when another worker counts a
// start of the same message in between, or when the database cannot be reached for the taking back.
//
// The records of messages that ended out of the processor's sight (purged, acknowledged by a program of your own, expired)
// stay. They say nothing about a later message of the same key, but they take room: give schema.Attempts a RetentionDays,
// 90 say. A message that is postponed for longer than that has all its attempts again; nothing worse happens.
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
//
// # Figures and spans
//
// The scope is github.com/spanqueue/spanqueue/processor. The first two follow OpenTelemetry's conventions for messaging.
//
//	messaging.client.consumed.messages  counter    {message}      deliveries that ended, by spanqueue.outcome
//	messaging.process.duration          histogram  s              from the start of a delivery to its outcome, by spanqueue.outcome
//	spanqueue.transaction.runs          counter    {transaction}  transactions begun, for handlers and for fates
//	spanqueue.transaction.aborts        counter    {transaction}  those of them begun again since nothing of them was kept
//	spanqueue.commit.unknown            counter    {commit}       commits whose outcome was unknown at first
//	spanqueue.receiver.waiting          gauge      {message}      messages that were received and wait for a slot
//	spanqueue.receiver.in_hand          gauge      {message}      messages that are being handled
//	spanqueue.receiver.streams          counter    {stream}       receive streams opened
//	spanqueue.lease.renewed             counter    {lease}        leases renewed
//	spanqueue.lease.lost                counter    {lease}        leases that ended under a handler
//	spanqueue.telemetry.dropped         counter    {item}         what was not told, since an exporter or the logger was too slow
//
// All carry messaging.system (spanner), messaging.operation.name and messaging.operation.type (process),
// messaging.destination.name (the queue) and messaging.consumer.group.name (Config.Name). Where there is an outcome it is
// spanqueue.outcome, one of the Outcome texts; error.type has it too for those that are failures, retried and dead-lettered.
//
// A delivery is one span, "process" and the queue's name, of kind consumer, with the same attributes, spanqueue.outcome and
// spanqueue.attempt. Its status is an error for failures only. It is in the handler's context, but for a Batch, whose
// transaction belongs to many.
package processor
