package native

import (
	"context"
	"fmt"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/schema"
)

// Stats implements backend.Queue.
func (q *Queue) Stats(ctx context.Context) (backend.Stats, error) {
	return backend.CountStats(ctx, q.client, q.sql.queue, quote(schema.DeliverTimeColumn))
}

// Peek implements backend.Queue.
func (q *Queue) Peek(ctx context.Context, n int) ([]backend.Delivery, error) {
	var ds []backend.Delivery
	sql := fmt.Sprintf("SELECT %s FROM %s ORDER BY DeliverTime LIMIT @n", q.sql.selectList, q.sql.queue)
	err := q.client.Single().Query(ctx, spanner.Statement{SQL: sql, Params: map[string]any{"n": int64(n)}}).Do(func(row *spanner.Row) error {
		d, err := q.delivery(row)
		ds = append(ds, d)
		return err
	})
	return ds, err
}

// Purge implements backend.Queue.
func (q *Queue) Purge(ctx context.Context, n int) (int, error) {
	var acks []*spanner.Mutation
	it := q.client.Single().ReadWithOptions(ctx, q.definition.Name, spanner.AllKeys(), q.key.Columns(), &spanner.ReadOptions{Limit: n})
	err := it.Do(func(row *spanner.Row) error {
		key, err := q.key.Read(row)
		// A message that a handler acknowledged since the read is gone already: that is what was wanted.
		acks = append(acks, spanner.Ack(q.definition.Name, key, spanner.WithIgnoreNotFound(true)))
		return err
	})
	if err != nil || len(acks) == 0 {
		return 0, err
	}
	if _, err := q.client.Apply(ctx, acks, spanner.TransactionTag(q.tag("purge"))); err != nil {
		return 0, err
	}
	return len(acks), nil
}
