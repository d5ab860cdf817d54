// Package queues gives a database of the public emulator the queues that the service has and the emulator has not.
//
// # Terms
//
// A queue, its message, its lease and its lease token are the service's. A receiver is one open RECEIVE_<Queue>
// statement. A turn is the front's: one read-write transaction of a database at a time. What a queue is kept as, the
// backing table, its index and its declaration, is told in package backing.
//
// # Who decides
//
// The emulator decides which messages exist: a send or an acknowledgement takes effect when the emulator's commit
// does, and whoever is about to hand a message out reads its row first. Leases live in this process (package ledger)
// and decide only who is given a message, never whether it exists; they end with the process. Times are judged by the
// machine's clock plus Options.ClockOffset.
//
// # How a message reaches a receiver
//
//	commit --Committed--> reader --batch--> receiver --(filter, grant)--> lease --send--> client
//
// Each queue has one reader, a goroutine that starts with the first receiver. It sleeps until a commit may have added
// messages (Committed), a known message falls due or comes back, or a receiver is ready for more, and it does nothing
// while no receiver waits. Then it takes one turn, in which it reads what is new and the rows of the messages it gives
// out. Wake-ups that arrive meanwhile merge into one.
//
// A receiver takes a batch, lets the emulator evaluate its WHERE over the batch's rows (never over the table), leases
// what passes, and sends it row by row; only then does it ask for another batch. So at most one batch is ahead of what
// flow control has accepted. A message that the filter refused goes to other receivers and is not offered to this one
// again, so a condition should depend on nothing but the message.
//
// # Streams
//
// The first message of a stream carries the metadata, every row a resume token of its own, and every 20 s without a
// row an empty message a new token, because Google's Go client hands rows on only at a new token. A resumed stream
// sends the rows behind the token again if their leases still run, under the same lease tokens, and ends when the
// first one would have. The token of a stream that is not known (any more) starts a new stream.
//
// # Roles
//
// The emulator has no database roles, so they are kept here (package roles), as declarations are. A session that named a
// role needs the privileges that the service documents: INSERT to send, DELETE to acknowledge or delete, SELECT to read
// a queue, EXECUTE on RECEIVE_<Queue> and RENEWLEASE_<Queue> to call them; none of them includes another. What a
// statement reads is found by its FROM and JOIN clauses. A session that named no role may do everything. Grants on
// tables, views and everything else are kept and shown, and not enforced.
//
// # Failure rules
//
//   - A receiver that goes away leaves its leases to run out; rows that it had leased and not yet tried to send are
//     ready again at once.
//   - A lease is checked just before its row is sent: a row that waited longer than its lease is not sent.
//   - An error of the emulator ends the receivers of that queue with that error; ABORTED is tried again.
//   - A queue that is dropped ends its receivers with NOT_FOUND.
//
// # Not documented by the service, and what is done here
//
//   - UPDATE of a queue, INSERT OR UPDATE, and Insert, Update, InsertOrUpdate and Replace mutations: INVALID_ARGUMENT.
//   - A receive or renewal that is not a strong single-use read: INVALID_ARGUMENT.
//   - RECEIVE_<Queue> through ExecuteSql, or as a partitioned query: INVALID_ARGUMENT.
//   - WHERE of RECEIVE_<Queue> sees the key columns, Payload and DeliverTime; the columns of the lease come into being
//     when a message has passed.
//   - A hidden key column is not part of *, as in a table.
//   - A queue is not dropped while privileges on it are granted, nor a role that has any; a queue's name in GRANT ... ON
//     TABLE is refused. A session outlives its role, without privileges on queues.
//   - Arguments are named, but for that of RENEWLEASE_<Queue>; max_duration defaults to 20 minutes and max_batch_size to 100.
//   - A message of a queue with disable_delivery is kept and not delivered. The option is obeyed at once: a stream that is
//     open stays open and sends nothing more, and goes on when delivery is enabled again. What was sent can be renewed and
//     acknowledged meanwhile. disable_send refuses a send when its commit or statement has the turn; ALTER QUEUE waits for
//     a transaction that has sent by then.
//   - A part of the key that the database makes has a place in the key of Send, where its value is ignored, and of Ack,
//     where it counts. (An Ack mutation of a message that the same transaction has sent by SQL is NOT_FOUND then.)
//   - A queue that is dropped and created again, with the same columns and in one batch, keeps its open streams.
//
// # What the emulator cannot do, and what is done instead
//
//   - INTERLEAVE IN without PARENT: the table and the key are checked, and nothing is stored side by side. Between that
//     and INTERLEAVE IN PARENT a queue can be altered while it has no messages, and is UNIMPLEMENTED otherwise.
//   - A key column of type UUID: UNIMPLEMENTED.
package queues
