package table

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/boottime"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
)

// Release implements backend.Releaser.
func (q *Queue) Release(ctx context.Context, deliveries []backend.Delivery) error {
	held, err := q.change(ctx, "release", deliveries, func(ctx context.Context, tx backend.SpannerTx, ds []backend.Delivery, rows []row) error {
		past, err := q.justPast(ctx, tx)
		if err != nil {
			return err
		}
		n := q.columns.names
		var writes []*spanner.Mutation
		for i, r := range rows {
			visible := r.due // it was visible then
			if past.After(visible) {
				visible = past
			}
			columns, values := q.takenBack(ds[i], r)
			writes = append(writes, q.update(r.key, append(columns, n.VisibleAt, n.LeaseToken), append(values, visible, spanner.NullString{})...))
		}
		return tx.BufferWrite(writes)
	})
	if err != nil {
		return err
	}
	process.sent(q.name, held)
	if missing := len(deliveries) - held; missing > 0 {
		return fmt.Errorf("%w: %d of %d messages of %s that were to be given back", backend.ErrNotHeld, missing, len(deliveries), q.table)
	}
	return nil
}

// TakeBack implements backend.Ledger. The lease stays; a message that is to come back at once is released instead.
func (q *Queue) TakeBack(ctx context.Context, d backend.Delivery) error {
	_, err := q.change(ctx, "attempts", []backend.Delivery{d}, func(_ context.Context, tx backend.SpannerTx, ds []backend.Delivery, rows []row) error {
		var writes []*spanner.Mutation
		for i, r := range rows {
			columns, values := q.takenBack(ds[i], r)
			writes = append(writes, q.update(r.key, columns, values...))
		}
		return tx.BufferWrite(writes)
	})
	return err
}

// takenBack returns what is written when the claim of a delivery is no attempt. It is the count before the claim, so that
// it may be written twice.
func (q *Queue) takenBack(d backend.Delivery, r row) (columns []string, values []any) {
	before := r.attempts - 1
	if d.Record != nil {
		before = int64(d.Record.Starts + d.Record.Failures)
	}
	n := q.columns.names
	columns, values = []string{n.Attempts}, []any{max(min(before, r.attempts), r.errors)}
	if before <= 0 {
		columns, values = append(columns, n.FirstAt), append(values, spanner.NullTime{})
	}
	return columns, values
}

// change runs a transaction that writes what becomes of those of the deliveries that are held, and returns how many are.
func (q *Queue) change(ctx context.Context, what string, deliveries []backend.Delivery,
	write func(ctx context.Context, tx backend.SpannerTx, held []backend.Delivery, rows []row) error) (int, error) {
	if len(deliveries) == 0 {
		return 0, nil
	}
	var held []backend.Delivery
	var committing time.Time
	response, err := q.client.ReadWriteTransactionWithOptions(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		rows, err := q.readRows(ctx, tx, keysOf(deliveries), q.columns.carry, backend.Exclusive())
		if err != nil {
			return err
		}
		held = nil
		var heldRows []row
		for _, d := range deliveries {
			if r, there := rows[rowcodec.ID(d.Key)]; there && r.holds(d) {
				held, heldRows = append(held, d), append(heldRows, r)
			}
		}
		if err := write(ctx, tx, held, heldRows); err != nil {
			return err
		}
		committing = boottime.Now()
		return nil
	}, backend.TxOptions{Tag: what + "=" + q.table}.Transaction())
	if err != nil {
		return 0, fmt.Errorf("queue: %s of %d messages of %s: %w", what, len(deliveries), q.table, err)
	}
	q.clock.committed(response.CommitTs, committing)
	return len(held), nil
}
