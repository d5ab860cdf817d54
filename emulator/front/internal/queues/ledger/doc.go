// Package ledger keeps what the front knows about the messages of one queue: which are waiting for their time, which
// are ready, which are with a receiver, and which are leased. It is pure bookkeeping: it reads no database and starts
// no goroutine.
//
// # Terms
//
// A message is a row of the queue. Its ID is the key together with the generation, a value that every insert draws
// anew: a key that was deleted and inserted again is another message.
//
// A message is in one of these states:
//
//	waiting   its time has not come: not yet due, or its last lease (and the back-off after it) has not run out
//	ready     it can be given to a receiver
//	offered   a receiver has it in hand and decides
//	leased    waiting, with a live lease: the receiver's until the lease ends
//
//	Learn --> waiting --> ready --Take--> offered --Grant--> leased --(lease ends)--> ready
//	                        ^                |                  |
//	                        +-- Refuse, PutBack                 +-- Renew: a longer lease, another token
//
// Forget takes a message out in any state: its row is gone.
//
// # Who decides
//
// The database decides which messages exist; the ledger is told (Learn, Forget) and may lag behind, so whoever takes a
// message reads its row before using it. Time is this process's: a time given to the ledger, such as a due time, is
// compared with time.Now, and leases are measured by the monotonic clock.
//
// # Tokens
//
// A lease is named by its token. Renewing gives the lease a new token and the old one is dead. The token of a lease
// that has run out is dead too. The token of a lease whose message is gone cannot be renewed, and Renew says so until
// the lease would have run out.
package ledger
