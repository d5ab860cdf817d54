// Package queue sends, receives and acknowledges the messages of Cloud Spanner queues, so that an acknowledgement and
// the work that it stands for are one commit.
//
// Most programs need Send from here and take their messages through package processor. A program with a loop of its own
// uses Receive, Renew and Ack.
//
// # Kinds
//
// New serves a Spanner queue, which needs the Enterprise edition (or the emulator of this module). NewTable serves a queue
// table: an ordinary table of any edition, which this library claims from, leases and fences by itself (schema.QueueTable).
// Everything below holds for both; where they differ the comments say so. In short: a queue table's leases are as long as
// you say, a renewal keeps its token, a message that is not taken is given back at once, a delivery ends when another
// receiver has taken the message, and messages may have priorities and an order.
//
// # Terms
//
// A message is named by its key, through retries, deferrals, dead-lettering and redrive. It is due at its DeliverTime.
// (key, DeliverTime) names one delivery. A delivered message is leased: for the lease's length it is usually, not
// certainly, delivered to nobody else. To acknowledge (ack) is to delete the message in a transaction that asserts that
// it is still there. To resend is to acknowledge it and send it again, same key, new DeliverTime, in one transaction.
//
// # The guard
//
// Every acknowledgement, resend and probe asserts the key and the DeliverTime that was seen, and in a queue table that
// nobody else has taken the message since. The key alone does not name
// a delivery: when a transaction that resent a message is run a second time (the client does that by itself after some
// lost answers), or when a stale holder wakes up, the new message has the old one's key, and an ack by key alone would
// take it and let the work happen twice. The guard is always on.
//
// # A miss
//
// An ack that finds no such delivery fails with ErrNotHeld. Return that error from the transaction function: the client
// rolls back, and whoever took the message has done, or will do, the work. A caller who swallows the error cannot commit
// either: the same call puts a mutation into the transaction that no commit survives. A program that holds its
// transaction by hand (spanner.ReadWriteStmtBasedTransaction) must call Rollback.
//
// # Who decides
//
// The database. Whether a message is due, leased or there at all is never judged by this machine's clock.
//
// # Dead letters
//
// A processor that gives a message up moves it into the queue's table of dead letters (schema.DeadLetters), with its bytes
// and the reason. Queue.DeadLetters lists them, shows one, and settles them: Redrive sends the message again under its own
// key, Discard removes it. A letter is settled once, however many operators are at work, whatever answers are lost.
//
// # When a send's outcome is unknown
//
// A commit may land and its answer be lost, so a Send that fails with DeadlineExceeded, Canceled, Unavailable, Internal
// or Unknown may have sent; and after some lost answers the client runs it again by itself, and it fails with ErrExists.
// Send the same key again with OrIgnore: it succeeds whether or not the first one landed, while the message is still in
// the queue; Probe, asked with the key alone, tells whether it is. Once it has been acknowledged its key is free, and the
// second send is a new message; a consumer that must not do the work again keeps a receipt per operation.
package queue
