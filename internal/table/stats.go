package table

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
)

// Stats implements backend.Queue.
func (q *Queue) Stats(ctx context.Context) (backend.Stats, error) {
	return backend.CountStats(ctx, q.client, quote(q.table), quote(q.columns.names.DueTime))
}

// Peek implements backend.Queue. A message that is claimed, or was, shows the token of that claim: who acknowledges it
// competes with the holder.
func (q *Queue) Peek(ctx context.Context, n int) ([]backend.Delivery, error) {
	columns := make([]string, len(q.columns.all))
	for i, c := range q.columns.all {
		columns[i] = quote(c)
	}
	sql := fmt.Sprintf("SELECT %s FROM %s ORDER BY %s LIMIT @n", strings.Join(columns, ", "), quote(q.table), quote(q.columns.names.DueTime))
	var ds []backend.Delivery
	err := q.client.Single().Query(ctx, spanner.Statement{SQL: sql, Params: map[string]any{"n": int64(n)}}).Do(func(r *spanner.Row) error {
		read, err := q.readRow(r)
		if err != nil {
			return err
		}
		d, err := q.delivery(read)
		d.LeaseEnd, d.Record = time.Time{}, nil // it is not handed out
		ds = append(ds, d)
		return err
	})
	return ds, err
}

// Purge implements backend.Queue.
func (q *Queue) Purge(ctx context.Context, n int) (int, error) {
	var deletes []*spanner.Mutation
	it := q.client.Single().ReadWithOptions(ctx, q.table, spanner.AllKeys(), q.columns.keys, &spanner.ReadOptions{Limit: n})
	err := it.Do(func(r *spanner.Row) error {
		key, err := q.key.Read(r)
		// A message that a handler acknowledged since the read is gone already: that is what was wanted.
		deletes = append(deletes, spanner.Delete(q.table, key))
		return err
	})
	if err != nil || len(deletes) == 0 {
		return 0, err
	}
	if _, err := q.client.Apply(ctx, deletes, spanner.TransactionTag(backend.Tag("purge="+q.table))); err != nil {
		return 0, err
	}
	return len(deletes), nil
}
