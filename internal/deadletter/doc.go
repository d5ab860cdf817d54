// Package deadletter works on the table of dead letters that stands beside a queue of any kind: it lists the letters, shows
// one, and settles one, by sending its message again or by discarding it.
//
// # Terms
//
// A letter is one death of one message. It is named by the message's key and the time of death, since a key can be sent
// again and die again. To redrive is to move a letter back into the queue, under the same key, due now, in one transaction.
// A letter is gone when its row is: it was redriven or discarded, or its retention has ended.
//
// # Who decides
//
// The letter's row. Whoever settles a letter reads the row under an exclusive lock and deletes it in the same transaction,
// so that of any number of operators one settles it, and the others find it gone. Times of death are commit timestamps,
// and are compared with each other only.
//
// # States of one settlement
//
//	read ── no row ─────────────────────────► ErrGone; or settled, when a commit of this call may have landed before
//	 │ └─── fails ──────────────────────────► the error; nothing was kept
//	 ▼
//	commit sent ── answered ────────────────► settled
//	 │ ├── refused, for instance because
//	 │ │   the key is in the queue ─────────► the error; nothing was kept, the letter stays
//	 │ ├── aborted ─────────────────────────► read again
//	 ▼
//	unknown ────────────────────────────────► read again; the row tells whether it had landed
//
// To read and commit again is safe at any time: the first commit deletes the row, if it lands at all, and the second one
// then finds none. The transaction is held by hand, so that the client does not run it again unseen and every answer to a
// commit is known here.
package deadletter
