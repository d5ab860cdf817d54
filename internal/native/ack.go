package native

import (
	"context"
	"fmt"

	"cloud.google.com/go/spanner"
	sppb "cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
	"google.golang.org/api/iterator"
	"google.golang.org/grpc/codes"
)

// poisonTable does not exist. Its name is what an operator reads in the commit's error.
const poisonTable = "spanqueue_message_not_held"

// poison makes the transaction unable to commit. Its error is of no use: a transaction that is closed cannot commit
// anyway.
func poison(tx backend.SpannerTx) {
	_ = tx.BufferWrite([]*spanner.Mutation{spanner.Insert(poisonTable, []string{"Id"}, []any{int64(1)})})
}

func exclusive() *spanner.ReadOptions {
	return &spanner.ReadOptions{LockHint: sppb.ReadRequest_LOCK_HINT_EXCLUSIVE}
}

// Ack implements backend.Queue.
func (q *Queue) Ack(ctx context.Context, tx backend.SpannerTx, d backend.Delivery) error {
	params := map[string]any{"seen": d.DeliverTime}
	sql := fmt.Sprintf("DELETE FROM %s WHERE %s ASSERT_ROWS_MODIFIED 1", q.sql.queue, q.sql.where(d.Key, params))
	_, err := tx.Update(ctx, spanner.Statement{SQL: sql, Params: params})
	if err == nil {
		return nil
	}
	poison(tx)
	if spanner.ErrCode(err) == codes.OutOfRange {
		return fmt.Errorf("%w: queue %s, key %v, due %v: %w", backend.ErrNotHeld, q.definition.Name, d.Key, d.DeliverTime, err)
	}
	return fmt.Errorf("queue: ack in %s: %w", q.definition.Name, err)
}

// AckAll implements backend.Queue.
func (q *Queue) AckAll(ctx context.Context, tx backend.SpannerTx, deliveries []backend.Delivery) (missing []int, err error) {
	defer func() {
		if err != nil {
			poison(tx)
			err = fmt.Errorf("queue: ack of %d messages in %s: %w", len(deliveries), q.definition.Name, err)
		}
	}()
	if q.cannotSelect.Load() {
		return q.deleteAll(ctx, tx, deliveries)
	}
	missing, err = q.readAndAck(ctx, tx, deliveries)
	if spanner.ErrCode(err) == codes.PermissionDenied {
		// The error leaves the transaction function, or the caller tries again: then by the way that needs no SELECT.
		q.cannotSelect.Store(true)
	}
	return missing, err
}

func (q *Queue) readAndAck(ctx context.Context, tx backend.SpannerTx, deliveries []backend.Delivery) (missing []int, err error) {
	keys := make([]spanner.Key, len(deliveries))
	for i, d := range deliveries {
		keys[i] = d.Key
	}
	there, err := q.readLocked(ctx, tx, keys)
	if err != nil {
		return nil, err
	}
	var acks []*spanner.Mutation
	for i, d := range deliveries {
		id := rowcodec.ID(d.Key)
		if found, ok := there[id]; !ok || !found.DeliverTime.Equal(d.DeliverTime) {
			missing = append(missing, i)
			continue
		}
		delete(there, id) // the same delivery twice in one call is acknowledged once
		acks = append(acks, spanner.Ack(q.definition.Name, d.Key))
	}
	return missing, tx.BufferWrite(acks)
}

// deleteAll takes out the deliveries by one statement that says which they were.
func (q *Queue) deleteAll(ctx context.Context, tx backend.SpannerTx, deliveries []backend.Delivery) (missing []int, err error) {
	stmt := q.deleteStatement(deliveries)
	gone := make(map[string]bool, len(deliveries))
	it := tx.Query(ctx, stmt)
	defer it.Stop()
	for {
		row, err := it.Next()
		if err == iterator.Done {
			break
		}
		if err != nil {
			return nil, err
		}
		key, err := q.key.Read(row)
		if err != nil {
			return nil, err
		}
		gone[rowcodec.ID(key)] = true
	}
	for i, d := range deliveries {
		id := rowcodec.ID(d.Key)
		if !gone[id] {
			missing = append(missing, i)
		}
		delete(gone, id)
	}
	return missing, nil
}
