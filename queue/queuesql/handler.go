package queuesql

import (
	"context"
	"database/sql"
	"errors"

	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
)

// HandlerFunc does the work of one message inside the transaction that acknowledges it.
type HandlerFunc func(ctx context.Context, tx *sql.Tx, m *queue.Message) error

// ErrEnded is the error of a handler that has called Commit or Rollback of its transaction: the processor does that.
var ErrEnded = errors.New("queuesql: the handler has ended its transaction by itself; return nil to commit, or an error to roll back")

// Handler makes a handler for a processor of a function that does its work in a transaction of db, the database that the
// queue is in. What it writes through tx takes effect exactly once, in the commit that takes the message from the queue.
// Everything that is said of processor.Tx holds: the function may be called several times for one delivery, and what it
// returns decides. Retries, dead letters, Snooze and the like are written by the queue's own client.
//
// The function must neither commit nor roll back: a handler that did and returned nil fails with ErrEnded. When it has
// committed, its work and the acknowledgement stand, and the message is not handled again. A transaction that it begins
// itself, through db, is not refused, as it is in a processor.Tx: it is another one, and not part of the exactly-once.
//
// Each running handler uses one connection of db: a limit by SetMaxOpenConns should leave room for
// processor.Config.Concurrency of them, beside the one that Client keeps.
func Handler(db *sql.DB, f HandlerFunc) processor.Handler {
	if f == nil {
		return processor.Through(through(db), nil)
	}
	return processor.Through(through(db), func(ctx context.Context, tx backend.Tx, m *queue.Message) error {
		t := tx.(sqlTx)
		if err := f(ctx, t.tx, m); err != nil {
			return err
		}
		return t.open(ctx)
	})
}

// open says whether the transaction is still open, by a statement that the driver answers without a call.
func (t sqlTx) open(ctx context.Context) error {
	rows, err := t.tx.QueryContext(ctx, "SHOW VARIABLE RETRY_ABORTS_INTERNALLY")
	if errors.Is(err, sql.ErrTxDone) && ctx.Err() == nil {
		return ErrEnded
	}
	if err != nil {
		return err
	}
	return rows.Close()
}
