package native

import (
	"context"
	"fmt"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
	"google.golang.org/api/iterator"
)

// Check implements backend.Queue.
func (q *Queue) Check(m backend.Outgoing) (backend.Outgoing, error) {
	key, err := q.key.Normalize(m.Key)
	if err != nil {
		return m, err
	}
	if err := q.payload.Check(m.Payload); err != nil {
		return m, err
	}
	if err := backend.CheckDeliverTime(m.DeliverTime); err != nil {
		return m, err
	}
	if m.Priority != 0 {
		return m, fmt.Errorf("the Priority is %d, and a Spanner queue has no priorities: queue tables have them (schema.QueueTable)", m.Priority)
	}
	m.Key = key
	return m, nil
}

// SendMutation implements backend.Queue.
func (q *Queue) SendMutation(m backend.Outgoing) (*spanner.Mutation, error) {
	var opts []spanner.SendOption
	if !m.DeliverTime.IsZero() {
		opts = append(opts, spanner.WithDeliveryTime(m.DeliverTime))
	}
	return spanner.Send(q.definition.Name, m.Key, q.payload.Encode(m.Payload), opts...), nil
}

// SendStatement implements backend.Queue.
func (q *Queue) SendStatement(m backend.Outgoing) (spanner.Statement, error) {
	params := map[string]any{"payload": q.payload.Encode(m.Payload)}
	if !m.DeliverTime.IsZero() {
		params["at"] = m.DeliverTime
	}
	return spanner.Statement{SQL: q.sql.insert(m.Key, !m.DeliverTime.IsZero(), params), Params: params}, nil
}

func (q *Queue) sendMutations(messages []backend.Outgoing) ([]*spanner.Mutation, error) {
	mutations := make([]*spanner.Mutation, len(messages))
	for i, m := range messages {
		var err error
		if mutations[i], err = q.SendMutation(m); err != nil {
			return nil, err
		}
	}
	return mutations, nil
}

// Send implements backend.Queue.
func (q *Queue) Send(ctx context.Context, messages []backend.Outgoing) error {
	mutations, err := q.sendMutations(messages)
	if err != nil {
		return err
	}
	_, err = q.client.Apply(ctx, mutations, spanner.TransactionTag(q.tag("send")))
	return err
}

// SendOrIgnore implements backend.Queue.
func (q *Queue) SendOrIgnore(ctx context.Context, messages []backend.Outgoing) (map[int]backend.Delivery, error) {
	var taken map[int]backend.Delivery
	_, err := q.client.ReadWriteTransactionWithOptions(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		taken = make(map[int]backend.Delivery)
		keys := make([]spanner.Key, len(messages))
		for i, m := range messages {
			keys[i] = m.Key
		}
		there, err := q.readLocked(ctx, tx, keys)
		if err != nil {
			return err
		}
		var fresh []backend.Outgoing
		for i, m := range messages {
			id := rowcodec.ID(m.Key)
			if d, ok := there[id]; ok {
				taken[i] = d
				continue
			}
			// A key that is given twice in one call meets itself.
			there[id] = backend.Delivery{Key: m.Key, Payload: m.Payload, DeliverTime: m.DeliverTime}
			fresh = append(fresh, m)
		}
		mutations, err := q.sendMutations(fresh)
		if err != nil {
			return err
		}
		return tx.BufferWrite(mutations)
	}, backend.TxOptions{Tag: q.tag("send")}.Transaction())
	return taken, err
}

// readLocked reads the messages of the keys and keeps them locked until the transaction ends, those that are not there
// too.
func (q *Queue) readLocked(ctx context.Context, tx backend.SpannerTx, keys []spanner.Key) (map[string]backend.Delivery, error) {
	there := make(map[string]backend.Delivery, len(keys))
	it := tx.ReadWithOptions(ctx, q.definition.Name, spanner.KeySetFromKeys(keys...), q.columns, backend.Exclusive())
	defer it.Stop()
	for {
		row, err := it.Next()
		if err == iterator.Done {
			return there, nil
		}
		if err != nil {
			return nil, err
		}
		d, err := q.delivery(row)
		if err != nil {
			return nil, err
		}
		there[rowcodec.ID(d.Key)] = d
	}
}
