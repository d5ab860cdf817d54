package table

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
)

// Release implements backend.Releaser.
func (q *Queue) Release(ctx context.Context, deliveries []backend.Delivery) error {
	missing := 0
	err := q.change(ctx, "release", deliveries, func(d backend.Delivery, r row, held bool) *spanner.Mutation {
		if !held {
			missing++
			return nil
		}
		visible, known := q.clock.past()
		if !known || visible.Before(r.due) {
			visible = r.due // it was visible then
		}
		n := q.columns.names
		columns, values := q.takenBack(d, r)
		return q.update(d.Key, append(columns, n.VisibleAt, n.LeaseToken), append(values, visible, spanner.NullString{})...)
	}, func() { missing = 0 })
	if err != nil {
		return err
	}
	process.sent(q.name, len(deliveries)-missing)
	if missing > 0 {
		return fmt.Errorf("%w: %d of %d messages of %s that were to be given back", backend.ErrNotHeld, missing, len(deliveries), q.table)
	}
	return nil
}

// TakeBack implements backend.Ledger. The lease stays; a message that is to come back at once is released instead.
func (q *Queue) TakeBack(ctx context.Context, d backend.Delivery) error {
	return q.change(ctx, "attempts", []backend.Delivery{d}, func(d backend.Delivery, r row, held bool) *spanner.Mutation {
		if !held {
			return nil
		}
		columns, values := q.takenBack(d, r)
		return q.update(d.Key, columns, values...)
	}, func() {})
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

// change writes, in one transaction, what becomes of each delivery. write returns nil for none; reset is called before
// each run.
func (q *Queue) change(ctx context.Context, what string, deliveries []backend.Delivery,
	write func(d backend.Delivery, r row, held bool) *spanner.Mutation, reset func()) error {
	var committing time.Time
	response, err := q.client.ReadWriteTransactionWithOptions(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		reset()
		rows, err := q.readRows(ctx, tx, keysOf(deliveries), q.columns.carry, backend.Exclusive())
		if err != nil {
			return err
		}
		var writes []*spanner.Mutation
		for _, d := range deliveries {
			r, there := rows[rowcodec.ID(d.Key)]
			if w := write(d, r, there && r.holds(d)); w != nil {
				writes = append(writes, w)
			}
		}
		committing = time.Now()
		return tx.BufferWrite(writes)
	}, backend.TxOptions{Tag: what + "=" + q.table}.Transaction())
	if err != nil {
		return fmt.Errorf("queue: %s of %d messages of %s: %w", what, len(deliveries), q.table, err)
	}
	q.clock.committed(response.CommitTs, committing)
	return nil
}
