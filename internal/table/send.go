package table

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/boottime"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
)

// cellOf returns where in the index a message lies. The shard is a hash of the key, so that the messages of one sender
// spread; nothing depends on the hash being the same elsewhere or later.
func (q *Queue) cellOf(key spanner.Key, priority int64) cell {
	h := fnv.New64a()
	h.Write([]byte(rowcodec.ID(key)))
	// FNV leaves the low bits of similar keys related; the product's high bits are not.
	mixed := h.Sum64() * 0x9e3779b97f4a7c15 >> 32
	return cell{shard: int64(mixed % uint64(q.schema.ShardCount())), priority: priority}
}

// insert returns the mutation that sends a message. Without a due time the database's defaults say now.
func (q *Queue) insert(m backend.Outgoing, c carried) *spanner.Mutation {
	n := q.columns.names
	columns := with(q.columns.keys, n.Payload, n.Attempts, n.Errors, n.Deferrals, n.FirstAt, n.SentAt, n.Priority)
	values := append(m.Key[:len(m.Key):len(m.Key)], q.payload.Encode(m.Payload), c.attempts, c.errors, c.deferrals, c.first,
		spanner.CommitTimestamp, c.priority)
	place := q.cellOf(m.Key, c.priority)
	if n.Shard != "" {
		columns, values = append(columns, n.Shard), append(values, place.shard)
	}
	if !m.DeliverTime.IsZero() {
		columns, values = append(columns, n.DueTime, n.VisibleAt), append(values, m.DeliverTime, m.DeliverTime)
		process.expect(q.name, place, m.DeliverTime)
	}
	return spanner.Insert(q.table, columns, values)
}

// SendMutation implements backend.Queue.
func (q *Queue) SendMutation(m backend.Outgoing) (*spanner.Mutation, error) {
	process.soon(q.name)
	return q.insert(m, carried{priority: int64(m.Priority)}), nil
}

// SendStatement implements backend.Queue.
func (q *Queue) SendStatement(m backend.Outgoing) (spanner.Statement, error) {
	n := q.columns.names
	place := q.cellOf(m.Key, int64(m.Priority))
	columns, values, params := []string(nil), []string(nil), make(map[string]any)
	for i, k := range q.columns.keys {
		name := fmt.Sprintf("k%d", i)
		columns, values, params[name] = append(columns, quote(k)), append(values, "@"+name), m.Key[i]
	}
	params["payload"] = q.payload.Encode(m.Payload)
	columns = append(columns, n.Payload, n.Attempts, n.Errors, n.Deferrals, n.SentAt, n.Priority)
	values = append(values, q.payload.Parameter("payload"), "0", "0", "0", "PENDING_COMMIT_TIMESTAMP()", fmt.Sprint(place.priority))
	if n.Shard != "" {
		columns, values = append(columns, n.Shard), append(values, fmt.Sprint(place.shard))
	}
	now := "CURRENT_TIMESTAMP()"
	if !m.DeliverTime.IsZero() {
		now, params["at"] = "@at", m.DeliverTime
		process.expect(q.name, place, m.DeliverTime)
	}
	columns, values = append(columns, n.DueTime, n.VisibleAt), append(values, now, now)
	process.soon(q.name)
	return spanner.Statement{
		SQL:    fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", quote(q.table), strings.Join(columns, ", "), strings.Join(values, ", ")),
		Params: params,
	}, nil
}

// inserts returns the mutations of messages that are sent at once.
func (q *Queue) inserts(ctx context.Context, messages []backend.Outgoing) ([]*spanner.Mutation, error) {
	past, known := q.clock.justPast()
	if q.ordered() {
		known = false // it may be behind the times that others have
		var err error
		if messages, err = q.inSequence(ctx, messages); err != nil {
			return nil, err
		}
	}
	mutations := make([]*spanner.Mutation, len(messages))
	for i, m := range messages {
		if m.DeliverTime.IsZero() && known {
			// "Now" as far as it is known here: a commit of n rows with defaults costs n squared on the emulator.
			m.DeliverTime = past
		}
		mutations[i] = q.insert(m, carried{priority: int64(m.Priority)})
	}
	return mutations, nil
}

// Send implements backend.Queue.
func (q *Queue) Send(ctx context.Context, messages []backend.Outgoing) error {
	mutations, err := q.inserts(ctx, messages)
	if err != nil {
		return err
	}
	sent := boottime.Now()
	stamp, err := q.client.Apply(ctx, mutations, spanner.TransactionTag(backend.Tag("send="+q.table)))
	if err != nil {
		return err
	}
	q.clock.committed(stamp, sent)
	process.sent(q.name, len(messages))
	return nil
}

// SendOrIgnore implements backend.Queue.
func (q *Queue) SendOrIgnore(ctx context.Context, messages []backend.Outgoing) (map[int]backend.Delivery, error) {
	var taken map[int]backend.Delivery
	keys := make([]spanner.Key, len(messages))
	for i, m := range messages {
		keys[i] = m.Key
	}
	_, err := q.client.ReadWriteTransactionWithOptions(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		taken = make(map[int]backend.Delivery)
		rows, err := q.readRows(ctx, tx, keys, q.columns.all, backend.Exclusive())
		if err != nil {
			return err
		}
		var fresh []backend.Outgoing
		for i, m := range messages {
			id := rowcodec.ID(m.Key)
			if r, ok := rows[id]; ok {
				taken[i] = backend.Delivery{Key: r.key, Payload: r.payload, DeliverTime: r.due, Priority: int(r.priority)}
				continue
			}
			// A key that is given twice in one call meets itself.
			rows[id] = row{key: m.Key, payload: m.Payload, due: m.DeliverTime}
			fresh = append(fresh, m)
		}
		mutations, err := q.inserts(ctx, fresh)
		if err != nil {
			return err
		}
		return tx.BufferWrite(mutations)
	}, backend.TxOptions{Tag: "send=" + q.table}.Transaction())
	if err == nil {
		process.sent(q.name, len(messages)-len(taken))
	}
	return taken, err
}

func quote(identifier string) string { return "`" + strings.ReplaceAll(identifier, "`", "\\`") + "`" }
