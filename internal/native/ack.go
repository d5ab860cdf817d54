package native

import (
	"context"
	"fmt"
	"strings"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
	"google.golang.org/grpc/codes"
)

// Ack implements backend.Queue.
func (q *Queue) Ack(ctx context.Context, tx backend.SpannerTx, d backend.Delivery) error {
	statement, err := q.AckStatement(d)
	if err != nil {
		backend.Poison(tx)
		return err
	}
	_, err = tx.Update(ctx, statement)
	if err == nil {
		return nil
	}
	backend.Poison(tx)
	if spanner.ErrCode(err) == codes.OutOfRange {
		return fmt.Errorf("%w: queue %s, key %v, due %v: %w", backend.ErrNotHeld, q.definition.Name, d.Key, d.DeliverTime, err)
	}
	return fmt.Errorf("queue: ack in %s: %w", q.definition.Name, err)
}

// AckStatement implements backend.Statements.
func (q *Queue) AckStatement(d backend.Delivery) (spanner.Statement, error) {
	if err := q.checkShape(d); err != nil {
		return spanner.Statement{}, err
	}
	params := make(map[string]any)
	sql := fmt.Sprintf("DELETE FROM %s WHERE %s ASSERT_ROWS_MODIFIED 1", q.sql.queue, q.sql.where(d, "", params))
	return spanner.Statement{SQL: sql, Params: params}, nil
}

// AckAll implements backend.Queue.
func (q *Queue) AckAll(ctx context.Context, tx backend.SpannerTx, deliveries []backend.Delivery) (missing []int, err error) {
	defer func() {
		if err != nil {
			backend.Poison(tx)
			err = fmt.Errorf("queue: ack of %d messages in %s: %w", len(deliveries), q.definition.Name, err)
		}
	}()
	for _, d := range deliveries {
		if err := q.checkShape(d); err != nil {
			return nil, err
		}
	}
	if len(deliveries) == 0 {
		return nil, nil
	}
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

// checkShape refuses a delivery that cannot be of this queue.
func (q *Queue) checkShape(d backend.Delivery) error {
	if len(d.Key) != len(q.sql.keys) {
		return fmt.Errorf("queue: the message with key %v is not of queue %s, whose key is (%s)", d.Key, q.definition.Name,
			strings.Join(q.key.Columns(), ", "))
	}
	return nil
}
