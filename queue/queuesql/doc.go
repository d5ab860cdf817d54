// Package queuesql sends, acknowledges and handles the messages of a queue in transactions of database/sql, for programs
// that reach Spanner through github.com/googleapis/go-sql-spanner. It is written and tested against v1.25.0.
//
//	db, err := sql.Open("spanner", "projects/p/instances/i/databases/d")
//	client, release, err := queuesql.Client(ctx, db)
//	defer release()
//	q, err := queue.New(client, orders)
//
//	// A producer: the message is sent if the transaction commits.
//	err = queuesql.Send(ctx, tx, q, queue.Outgoing{Key: spanner.Key{"o1"}})
//
//	// A worker: what the function writes takes effect exactly once.
//	p, err := processor.New(q, queuesql.Handler(db, func(ctx context.Context, tx *sql.Tx, m *queue.Message) error {
//		_, err := tx.ExecContext(ctx, "UPDATE ...")
//		return err
//	}), processor.Config{})
//	err = p.Run(ctx)
//
// # Who does what
//
// Only the handler's own transaction is one of database/sql: the acknowledgement, what the handler writes, and the commit.
// Messages are received, their leases renewed, their attempts counted, commits of unknown outcome looked up, and failed
// messages sent again or dead-lettered through the queue's own client, as for any other handler. Receive messages with
// queue.Receive or a processor.
//
// # The guard
//
// An acknowledgement is DELETE ... WHERE key AND DeliverTime = @seen ASSERT_ROWS_MODIFIED 1, the first statement of the
// transaction. A miss fails with OUT_OF_RANGE, wrapped by queue.ErrNotHeld. Ack then rolls the *sql.Tx back, so that a
// caller who swallows the error gets sql.ErrTxDone from everything that follows, Commit included.
//
// # The driver's replay
//
// The driver records the statements of a transaction and their answers. When the database aborts the transaction, it runs
// them again in a new one, and goes on if the answers are the same. What that means for an acknowledgement, as measured:
//
//   - It is replayed with the same text and parameters, so with the same guard. It never takes a message that was sent
//     again under the same key.
//   - A replayed miss, where the first try hit, does not come back as OUT_OF_RANGE: the statement under way, or Commit,
//     returns spannerdriver.ErrAbortedDueToConcurrentModification (codes.Aborted), and nothing was kept. Run the whole
//     transaction again: the acknowledgement then says ErrNotHeld.
//   - A replay that fails half way leaves the driver in a new transaction with a part of the statements, and Commit of that
//     succeeds. When this happens in Ack, Ack rolls it back. When it happens in a statement of your own, after Ack, that
//     part is the acknowledgement without the work, and the message would be lost: never go on after an error with
//     codes.Aborted, whatever the statement was.
//   - Only ABORTED is replayed. A commit whose answer is lost is not: it is asked for again (UNAVAILABLE, a cut connection,
//     RESOURCE_EXHAUSTED) and answered with what it was, or its error comes back.
//
// Handler's transactions have the replay switched off: when the database aborts one, the function is called again, as
// processor.Tx does. In transactions of your own spannerdriver.RunTransaction does the same, and is the way to use Ack: a
// transaction that was aborted there cannot commit, also when its error is overlooked. A bare BeginTx with the replay works
// too, by the rules above, and not without them.
//
// # A commit of unknown outcome
//
// These errors of Commit leave open whether it has landed: codes.DeadlineExceeded (which wraps
// *spanner.TransactionOutcomeUnknownError), Canceled, Internal (INTERNAL with RST_STREAM too: unlike
// spanner.Client.ReadWriteTransaction, the driver does not run the function again for it), Unknown, Unavailable, and NOT_FOUND
// of the transaction. sql.ErrTxDone and a bare context error from Commit mean that it was not sent. A Handler's commits are
// looked up by the processor. In transactions of your own run the whole transaction again: with the acknowledgement in it,
// it takes effect once.
//
// # DML batches
//
// A statement in a batch (START BATCH DML, AUTO_BATCH_DML) is answered before it is executed. An acknowledgement must not be:
// Ack as the first statement is executed at once, also with AUTO_BATCH_DML, and in an active batch it fails with ErrBatch.
package queuesql
