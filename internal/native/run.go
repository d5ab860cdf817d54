package native

import (
	"context"
	"errors"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
)

// tx implements backend.Tx.
type tx struct {
	queue *Queue
	tx    *spanner.ReadWriteTransaction
}

func (t tx) Spanner() *spanner.ReadWriteTransaction { return t.tx }

func (t tx) Ack(ctx context.Context, d backend.Delivery) error { return t.queue.Ack(ctx, t.tx, d) }

func (t tx) AckAll(ctx context.Context, ds []backend.Delivery) ([]int, error) {
	return t.queue.AckAll(ctx, t.tx, ds)
}

func (t tx) Send(_ context.Context, m backend.Outgoing) error {
	mutation, err := t.queue.SendMutation(m)
	if err != nil {
		return err
	}
	return t.tx.BufferWrite([]*spanner.Mutation{mutation})
}

// RunTx implements backend.Queue.
func (q *Queue) RunTx(ctx context.Context, o backend.TxOptions, f func(context.Context, backend.Tx) error) error {
	_, err := q.client.ReadWriteTransactionWithOptions(ctx, func(ctx context.Context, t *spanner.ReadWriteTransaction) error {
		return f(ctx, tx{queue: q, tx: t})
	}, o.Transaction())
	return err
}

// Probe implements backend.Queue.
func (q *Queue) Probe(ctx context.Context, d backend.Delivery) (backend.Presence, error) {
	row, err := q.client.Single().ReadRow(ctx, q.definition.Name, d.Key, []string{"DeliverTime"})
	switch {
	case errors.Is(err, spanner.ErrRowNotFound): // and not any NOT_FOUND: that may be the queue or the database
		return backend.Gone, nil
	case err != nil:
		return backend.Gone, err
	}
	var found backend.Delivery
	if err := row.Columns(&found.DeliverTime); err != nil {
		return backend.Gone, err
	}
	if found.DeliverTime.Equal(d.DeliverTime) {
		return backend.Present, nil
	}
	return backend.Moved, nil
}
