package table

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/boottime"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
)

// tx implements backend.Tx and backend.LedgerTx.
type tx struct {
	queue *Queue
	tx    *spanner.ReadWriteTransaction
	acked map[string]row // by key: what a message that is sent again keeps
	sent  int
}

var _ backend.LedgerTx = (*tx)(nil)

// Spanner implements backend.Tx.
func (t *tx) Spanner() *spanner.ReadWriteTransaction { return t.tx }

// Ack implements backend.Tx.
func (t *tx) Ack(ctx context.Context, d backend.Delivery) error {
	r, err := t.queue.takeOut(ctx, t.tx, d)
	if err == nil {
		t.acked[rowcodec.ID(d.Key)] = r
	}
	return err
}

// AckAll implements backend.Tx.
func (t *tx) AckAll(ctx context.Context, ds []backend.Delivery) ([]int, error) {
	taken, missing, err := t.queue.takeOutAll(ctx, t.tx, ds)
	for _, r := range taken {
		t.acked[rowcodec.ID(r.key)] = r
	}
	return missing, err
}

// Send implements backend.Tx. A message that is sent again keeps its priority and its counts.
func (t *tx) Send(_ context.Context, m backend.Outgoing) error {
	c := carried{priority: int64(m.Priority)}
	if r, ok := t.acked[rowcodec.ID(m.Key)]; ok {
		c = r.carried
	}
	if err := t.tx.BufferWrite([]*spanner.Mutation{t.queue.insert(m, c)}); err != nil {
		return err
	}
	t.sent++
	return nil
}

// RunTx implements backend.Queue.
func (q *Queue) RunTx(ctx context.Context, o backend.TxOptions, f func(context.Context, backend.Tx) error) error {
	var sent int
	var committing time.Time
	response, err := q.client.ReadWriteTransactionWithOptions(ctx, func(ctx context.Context, t *spanner.ReadWriteTransaction) error {
		own := &tx{queue: q, tx: t, acked: make(map[string]row)}
		if err := f(ctx, own); err != nil {
			return err
		}
		// At the end, and not with the acknowledgement: a line that was read is locked against those who send to it.
		shown, err := q.next(ctx, t, slices.Collect(maps.Values(own.acked)))
		sent, committing = own.sent+shown, boottime.Now()
		return err
	}, o.Transaction())
	if err != nil {
		return err
	}
	q.clock.committed(response.CommitTs, committing)
	if sent > 0 {
		process.sent(q.name, sent)
	}
	return nil
}

// Probe implements backend.Queue. A message that somebody else has claimed since counts as moved: it is another delivery,
// and a commit of the one that is asked for cannot have landed any more, nor can it land.
func (q *Queue) Probe(ctx context.Context, d backend.Delivery) (backend.Presence, error) {
	r, err := q.client.Single().ReadRow(ctx, q.table, d.Key, q.columns.guard)
	switch {
	case errors.Is(err, spanner.ErrRowNotFound): // and not any NOT_FOUND: that may be the table or the database
		return backend.Gone, nil
	case err != nil:
		return backend.Gone, err
	}
	found, err := q.readRow(r)
	switch {
	case err != nil:
		return backend.Gone, err
	case found.holds(d):
		return backend.Present, nil
	}
	return backend.Moved, nil
}
