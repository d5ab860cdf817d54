package table

import (
	"context"
	"fmt"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
)

// holds says whether the row is the delivery: the same due time, and claimed by the claim that the delivery came with. A
// delivery without a token is one that nobody has claimed since it was sent.
func (r row) holds(d backend.Delivery) bool {
	return r.due.Equal(d.DeliverTime) && r.claim == claimOf(d.Token)
}

// notHeld says what was found in place of the delivery.
func (q *Queue) notHeld(d backend.Delivery, r row, there bool) error {
	found := "the message is gone"
	switch {
	case there && !r.due.Equal(d.DeliverTime):
		found = fmt.Sprintf("it was sent again, due %v", r.due)
	case there && r.claim == "":
		found = "it was given back"
	case there:
		found = "somebody else has claimed it"
	}
	return fmt.Errorf("%w: queue %s, key %v, due %v: %s", backend.ErrNotHeld, q.table, d.Key, d.DeliverTime, found)
}

// Ack implements backend.Queue. Where messages are ordered it reads who is next, which a transaction of RunTx does at its
// end: until the transaction's end, those who send under the ordering key may have to wait.
func (q *Queue) Ack(ctx context.Context, tx backend.SpannerTx, d backend.Delivery) error {
	r, err := q.takeOut(ctx, tx, d)
	if err != nil {
		return err
	}
	return q.leave(ctx, tx, r)
}

// leave brings back those who come after the rows that were taken out in a transaction of the caller's.
func (q *Queue) leave(ctx context.Context, tx backend.SpannerTx, rows ...row) error {
	if _, err := q.next(ctx, tx, rows); err != nil {
		backend.Poison(tx)
		return fmt.Errorf("queue: ack in %s: %w", q.table, err)
	}
	return nil
}

// takeOut acknowledges the delivery and returns its row.
//
// The read takes no exclusive lock: until the commit, the deletion locks nothing, and a renewal, which reads the token and
// writes VisibleAt, does not wait for a transaction that goes on for long. Only the holder of the token gets so far, so
// nobody competes for the lock at the end but the holder's own second try.
func (q *Queue) takeOut(ctx context.Context, tx backend.SpannerTx, d backend.Delivery) (row, error) {
	rows, err := q.readRows(ctx, tx, []spanner.Key{d.Key}, q.columns.carry, nil)
	if err != nil {
		backend.Poison(tx)
		return row{}, fmt.Errorf("queue: ack in %s: %w", q.table, err)
	}
	r, there := rows[rowcodec.ID(d.Key)]
	if !there || !r.holds(d) {
		backend.Poison(tx)
		return row{}, q.notHeld(d, r, there)
	}
	return r, tx.BufferWrite(q.removal(r))
}

// removal returns the mutations that take the row out. The first asserts that the row is there when its turn comes: a second
// acknowledgement of the delivery in the same transaction, whose read cannot see the first one, makes the commit fail.
func (q *Queue) removal(r row) []*spanner.Mutation {
	return []*spanner.Mutation{
		q.update(r.key, []string{q.columns.names.Attempts}, r.attempts),
		spanner.Delete(q.table, r.key),
	}
}

// AckAll implements backend.Queue.
func (q *Queue) AckAll(ctx context.Context, tx backend.SpannerTx, deliveries []backend.Delivery) (missing []int, err error) {
	taken, missing, err := q.takeOutAll(ctx, tx, deliveries)
	if err != nil {
		return missing, err
	}
	return missing, q.leave(ctx, tx, taken...)
}

func (q *Queue) takeOutAll(ctx context.Context, tx backend.SpannerTx, deliveries []backend.Delivery) (taken []row, missing []int, err error) {
	if len(deliveries) == 0 {
		return nil, nil, nil
	}
	rows, err := q.readRows(ctx, tx, keysOf(deliveries), q.columns.carry, nil)
	if err != nil {
		backend.Poison(tx)
		return nil, nil, fmt.Errorf("queue: ack of %d messages in %s: %w", len(deliveries), q.table, err)
	}
	var acks []*spanner.Mutation
	for i, d := range deliveries {
		id := rowcodec.ID(d.Key)
		r, there := rows[id]
		if !there || !r.holds(d) {
			missing = append(missing, i)
			continue
		}
		delete(rows, id) // the same delivery twice in one call is acknowledged once
		taken = append(taken, r)
		acks = append(acks, q.removal(r)...)
	}
	return taken, missing, tx.BufferWrite(acks)
}
