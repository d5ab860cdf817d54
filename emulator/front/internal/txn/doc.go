// Package txn has the read-write transactions that clients see.
//
// A Txn has an id that clients name it by. It is in one of the states of State; only Begun, Waiting, Active and
// Committing are alive. The first RPC that takes locks opens it: it begins a transaction of the emulator, on a session
// that the transaction has for itself, and waits for the database's turn. Commit, Rollback, or an end by the front
// close it: first in the emulator, then the turn goes to the next in line.
//
//	Begun -> Waiting -> Active -> Committing -> Committed
//	  any of the first three -> RolledBack, Aborted
//	                               Committing -> Failed, Aborted, or Active again when the emulator gave no answer
//
// Who may end it: the client (Rollback, DeleteSession), the emulator (ABORTED), the turn (idle while others wait), the
// client's connection (closed for longer than a bound), an injected fault, and the end of the front. A Commit that has
// been sent to the emulator is never given up: whoever else wants to end the transaction waits for it, or leaves it.
//
// What has ended is remembered, so that a second Commit gets the answer of the first: for an hour, and at most 100,000
// of them. Of an older one only its id tells that a front began it: it is answered ABORTED.
//
// Locks: Manager.mu before Txn.mu before Client.mu. None is held during a call to the emulator.
package txn
