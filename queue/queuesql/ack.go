package queuesql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/queue"
	"google.golang.org/grpc/codes"

	spannerdriver "github.com/googleapis/go-sql-spanner"
)

// ErrBatch is returned by Ack in a transaction that collects DML into a batch: an acknowledgement must be answered before
// the work that depends on it.
var ErrBatch = errors.New("queuesql: the transaction has an active DML batch; run it before the acknowledgement (RUN BATCH), or acknowledge first")

// Ack acknowledges the message in the transaction: it deletes the very delivery that m is, asserting that it is there. The
// acknowledgement counts when tx commits, together with everything else in it. Ack first, then work.
//
// When the delivery is gone the error wraps queue.ErrNotHeld. After any error of Ack, tx cannot commit any more: it has been
// rolled back, or the database has aborted it. An error with codes.Aborted asks for another run of the whole transaction, as
// spannerdriver.RunTransaction does by itself; see the package comment.
func Ack(ctx context.Context, tx *sql.Tx, q *queue.Queue, m *queue.Message) error {
	b, err := statementsOf(q.Backend())
	if err != nil {
		_ = tx.Rollback()
		return err
	}
	return ack(ctx, tx, q.Name(), b, m.Delivery())
}

func ack(ctx context.Context, tx *sql.Tx, name string, b backend.Statements, d backend.Delivery) error {
	statement, err := b.AckStatement(d)
	if err != nil {
		_ = tx.Rollback()
		return err
	}
	executed, err := execute(ctx, tx, statement)
	switch {
	case err == nil && executed:
		return nil
	case err == nil:
		err = ErrBatch
	case spanner.ErrCode(err) == codes.OutOfRange:
		err = fmt.Errorf("%w: queue %s, key %v, due %v: %w", backend.ErrNotHeld, name, d.Key, d.DeliverTime, err)
	case spanner.ErrCode(err) == codes.Aborted && !errors.Is(err, spannerdriver.ErrAbortedDueToConcurrentModification):
		// An aborted transaction cannot commit. It is left as it is: who runs it again, does so by resetting it.
		return fmt.Errorf("queuesql: ack in %s: %w", name, err)
	default:
		err = fmt.Errorf("queuesql: ack in %s: %w", name, err)
	}
	_ = tx.Rollback() // whoever overlooks the error finds the transaction ended
	return err
}

// statementsOf returns what is needed of the queue, or says why it cannot be had.
func statementsOf(q backend.Queue) (backend.Statements, error) {
	b, ok := q.(backend.Statements)
	if !ok {
		return nil, fmt.Errorf("queuesql: queue %s cannot be acknowledged by SQL", q.Definition().Name)
	}
	if err := b.CheckStatements(); err != nil {
		return nil, fmt.Errorf("queuesql: queue %s: %w", q.Definition().Name, err)
	}
	return b, nil
}
