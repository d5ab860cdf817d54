package queuesql

import (
	"context"
	"database/sql"
	"fmt"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/queue"
	"google.golang.org/grpc/codes"
)

// Send sends messages in the caller's transaction, one statement each: they are delivered if tx commits, and only then.
//
// Every message is checked first; when one could not be stored, no statement is executed and the error wraps
// queue.ErrInvalid. A key that is in the queue already fails with queue.ErrExists; the transaction stays open then, with the
// messages before it sent: return the error and roll back, or go on without. Any other error is the statement's own.
//
// On a connection with AUTO_BATCH_DML the statements are collected with others, and errors come when the batch is sent.
func Send(ctx context.Context, tx *sql.Tx, q *queue.Queue, messages ...queue.Outgoing) error {
	statements := make([]spanner.Statement, len(messages))
	for i, m := range messages {
		var err error
		if statements[i], err = q.SendStatement(m); err != nil {
			return err
		}
	}
	for i, s := range statements {
		_, err := tx.ExecContext(ctx, s.SQL, arguments(s)...)
		if err == nil {
			continue
		}
		err = fmt.Errorf("queuesql: send to %s, key %v: %w", q.Name(), messages[i].Key, err)
		if spanner.ErrCode(err) == codes.AlreadyExists {
			err = fmt.Errorf("%w: %w", queue.ErrExists, err)
		}
		return err
	}
	return nil
}
