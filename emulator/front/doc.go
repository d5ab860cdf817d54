// Package front is a gRPC server before the public Cloud Spanner emulator. Its clients see a Spanner with queues on
// which many transactions run at once; behind it is the emulator, which knows no queues, keeps one transaction a
// session, and lets one read-write transaction a database live while it aborts the others. What the front has no
// opinion on passes through as it is. Queues are described in internal/queues, injected faults in package fault.
//
// # Sessions
//
// A client's session exists in its name alone, which says its database, role and kind. Any well-formed name of a
// living database is accepted, also one that an earlier front gave out. Deleted names are remembered (the latest
// 100,000). The emulator's own sessions are the front's business: each transaction has one for itself, each read one
// for as long as it lasts.
//
// # Read-write transactions
//
// A transaction has an id of the front's. It is opened in the emulator by its first RPC that takes locks, and by then
// it must have the turn of its database: one read-write transaction at a time, first come first served. An RPC that
// waits for the turn leaves the line when its client gives up. Single-use commits, the groups of a BatchWrite, partitioned
// DML and schema changes take turns too; reads outside read-write transactions never wait. Databases do not wait for
// each other.
//
// The turn ends with Commit or Rollback. A transaction that has idled for Options.IdleBound loses it as soon as somebody
// waits, and one that nobody waits for after an hour. A transaction ends Options.ClosedBound after its client's connection
// closed. Partitioned DML has the turn for its statement alone.
//
// An RPC that begins a transaction inline (ExecuteSql, ExecuteStreamingSql, Read, StreamingRead, ExecuteBatchDml)
// begins it explicitly behind the front. If it fails, or if the answer that names the transaction is not delivered,
// the transaction is rolled back: nobody else could.
//
// The answer to a statement of such a transaction is read as fast as the emulator gives it and kept until the client takes
// it: the emulator would hold up every other request of the transaction meanwhile. So a client may work through a result
// row by row, with further statements in between, and one that stops reading is idle.
//
// Once a Commit was sent to the emulator it is not given up when its client leaves. Its result is kept, for an hour
// and for the latest 100,000 transactions, so that a second Commit gets the answer of the first.
//
// # What each RPC is answered in each state
//
// A statement is any of the five RPCs above. Waiting and committing answers come when the wait is over.
//
//	state        statement            Commit               Rollback
//	begun        OK                   OK                   OK
//	waiting      OK                   OK                   OK
//	active       OK                   OK                   OK
//	committing   FAILED_PRECONDITION  OK                   FAILED_PRECONDITION
//	committed    FAILED_PRECONDITION  OK                   FAILED_PRECONDITION
//	failed       ALREADY_EXISTS       ALREADY_EXISTS       OK
//	aborted      ABORTED              ABORTED              OK
//	rolled back  FAILED_PRECONDITION  FAILED_PRECONDITION  OK
//	unknown      ABORTED              ABORTED              OK
//	foreign      NOT_FOUND            NOT_FOUND            OK
//
// Committing: a second Commit waits for the first and gets the same, a Rollback waits for it and does not disturb it.
// Failed: a Commit that was refused, here for a row that exists; its error is given again. Aborted: by the emulator,
// by a fault, or by the front, for the reasons above; ABORTED always carries RetryInfo. Unknown: a front began it, and
// this one does not remember it. Foreign: no front began it; there is nothing to roll back. A transaction of another
// session is NOT_FOUND to all three, as it is to the emulator. A state in which a read or query met a constraint is the
// emulator's to answer.
//
// After a last statement, statements are FAILED_PRECONDITION, and so is a Commit with mutations.
//
// # Read-only transactions
//
// A read-only transaction is its read timestamp, taken once; each read is then a single-use read at that timestamp, so
// any number of them may be open. Partition tokens need a real transaction: it is kept for an hour.
//
// # Answers of the front's own
//
// Every answer has the header VersionHeader. Pre-commit tokens are made by the front, rising, for read-write
// transactions on multiplexed sessions; any token is accepted at Commit. BatchWrite, which the emulator lacks, commits
// group after group. ListSessions shows what this front has made. A session keeps the role it was created with, which must
// exist then; package internal/queues tells what a role needs for which use of a queue.
//
// # An emulator that knows queues
//
// Before the first statement or mutation that concerns queues, the front asks the emulator whether it has them, by a
// database in an instance of project spanqueue-probe that is gone afterwards. If it has, everything about queues and roles
// passes through as it is: leases, streams and privileges are the emulator's then, and Options.LeaseLength and
// Options.Redelivery do nothing. Sessions, transactions, turns and faults are still the front's; the role of a session
// does not reach the emulator.
//
// # Row deletion policies
//
// The emulator accepts them and never acts on them. The front deletes what has expired, in tables and queues of the
// databases that clients use, once an Options.RowDeletionInterval: in transactions of at most 500 rows, each with a turn
// of its own, by the machine's clock plus Options.ClockOffset.
//
// # What ends what
//
// An RPC that panics answers INTERNAL and is logged; it costs nobody else anything. An emulator that does not answer
// holds up its callers as long as they wait, a rollback is tried again until it succeeds, and Close hangs up on it
// after a few seconds. A session of the emulator with an open transaction is never deleted: the emulator would keep
// the locks and may crash.
//
// An emulator that ends takes its databases along. The front answers UNAVAILABLE, finds another one at the same address
// within about a second, and uses it as a new one: transactions from before are ABORTED, and leases and partitions are
// gone. The emulator numbers sessions and transactions from the beginning, so what the front kept from before is never
// taken for something of that name now. A receive stream stays open and goes on once its queue was created again.
//
// # Differences from the bare emulator
//
// Where the emulator is odd, the front follows the service: a foreign or malformed transaction id is NOT_FOUND rather
// than UNKNOWN, and rolling back what there is not is OK; a committed transaction answers for itself also when its
// session was used again; a partitioned DML transaction may be tried again after its statement failed; deleting a
// session ends its transactions, where the emulator keeps their locks. A schema change beside an open transaction
// waits, where the emulator refuses it. Beside an answer that its client does not read the emulator lets a transaction
// wait for ever.
package front
