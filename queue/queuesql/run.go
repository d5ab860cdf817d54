package queuesql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"cloud.google.com/go/spanner"
	spannerdriver "github.com/googleapis/go-sql-spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"google.golang.org/grpc/codes"
)

// sqlQueue is a queue whose transactions are those of db.
type sqlQueue struct {
	backend.Queue
	db         *sql.DB
	statements backend.Statements
}

// through returns the queue with the transactions of db.
func through(db *sql.DB) func(backend.Queue) (backend.Queue, error) {
	return func(q backend.Queue) (backend.Queue, error) {
		if db == nil {
			return nil, errors.New("queuesql: the *sql.DB is nil")
		}
		s, err := statementsOf(q)
		return sqlQueue{q, db, s}, err
	}
}

// RunTx implements backend.Queue. The driver's own replay is off: what is run again is f.
func (q sqlQueue) RunTx(ctx context.Context, o backend.TxOptions, f func(context.Context, backend.Tx) error) error {
	return spannerdriver.RunTransactionWithOptions(ctx, q.db, nil, func(ctx context.Context, t *sql.Tx) error {
		return f(ctx, sqlTx{q, t})
	}, o.Transaction())
}

// sqlTx implements backend.Tx, and the abilities that the transaction of a handler needs.
type sqlTx struct {
	queue sqlQueue
	tx    *sql.Tx
}

var (
	_ backend.Tx        = sqlTx{}
	_ backend.Forgetter = sqlTx{}
	_ backend.Aborter   = sqlTx{}
)

// Spanner returns nil: the driver does not show its transaction.
func (t sqlTx) Spanner() *spanner.ReadWriteTransaction { return nil }

func (t sqlTx) Ack(ctx context.Context, d backend.Delivery) error {
	return ack(ctx, t.tx, t.queue.Definition().Name, t.queue.statements, d)
}

func (t sqlTx) AckAll(ctx context.Context, ds []backend.Delivery) (missing []int, err error) {
	for i, d := range ds {
		s, err := t.queue.statements.AckStatement(d)
		if err != nil {
			return nil, err
		}
		executed, err := execute(ctx, t.tx, s)
		switch {
		case spanner.ErrCode(err) == codes.OutOfRange:
			missing = append(missing, i)
		case err != nil:
			return nil, fmt.Errorf("queuesql: ack in %s: %w", t.queue.Definition().Name, err)
		case !executed:
			return nil, ErrBatch
		}
	}
	return missing, nil
}

func (t sqlTx) Send(ctx context.Context, m backend.Outgoing) error {
	s, err := t.queue.SendStatement(m)
	if err != nil {
		return err
	}
	_, err = t.tx.ExecContext(ctx, s.SQL, arguments(s)...)
	return err
}

// Forget implements backend.Forgetter.
func (t sqlTx) Forget(ctx context.Context, d backend.Delivery) error {
	s, needed := t.queue.statements.ForgetStatement(d)
	if !needed {
		return nil
	}
	_, err := t.tx.ExecContext(ctx, s.SQL, arguments(s)...)
	return err
}

// Aborted implements backend.Aborter by asking: a transaction that was aborted answers every statement so, and mostly it is
// the client who knows and answers.
func (t sqlTx) Aborted(ctx context.Context) bool {
	rows, err := t.tx.QueryContext(ctx, "SELECT 1")
	if err == nil {
		defer rows.Close()
		for rows.Next() {
		}
		err = rows.Err()
	}
	return spanner.ErrCode(err) == codes.Aborted
}
