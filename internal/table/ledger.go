package table

import (
	"context"
	"fmt"
	"strings"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
	"github.com/spanqueue/spanqueue/schema"
	"google.golang.org/api/iterator"
	"google.golang.org/grpc/codes"
)

// A queue table keeps its messages' records in its own rows: the claim counts the start. The ledger's other table, that of
// the dead letters, is the same as beside a native queue.

// deadLetters names the table of the dead letters.
type deadLetters struct {
	table    string
	columns  []string
	priority string // its column for priorities; empty: none
}

func newDeadLetters(t schema.QueueTable, keys []string) deadLetters {
	d := schema.DeadLetters{Queue: t.Queue, Priorities: t.Priorities}
	n := d.Columns()
	out := deadLetters{
		table:    d.TableName(),
		priority: n.Priority,
		columns:  with(keys, n.DeadAt, n.Payload, n.DeliverTime, n.Reason, n.Error, n.Attempts, n.FirstAt, n.LastAt, n.Handler),
	}
	if out.priority != "" {
		out.columns = with(out.columns, out.priority)
	}
	return out
}

// PriorityCount implements backend.Prioritizer.
func (q *Queue) PriorityCount() int { return q.schema.PriorityCount() }

// CheckLedger implements backend.Ledger.
func (q *Queue) CheckLedger(ctx context.Context) error {
	columns := q.columns.keys
	if q.dead.priority != "" {
		columns = with(columns, q.dead.priority)
	}
	it := q.client.Single().ReadWithOptions(ctx, q.dead.table, spanner.AllKeys(), columns, &spanner.ReadOptions{Limit: 1})
	defer it.Stop()
	_, err := it.Next()
	switch {
	case err == nil, err == iterator.Done, spanner.ErrCode(err) == codes.PermissionDenied:
		return nil // a role may be allowed to write and not to read
	case spanner.ErrCode(err) == codes.NotFound:
		priorities := ""
		if column := q.dead.priority; column != "" {
			if strings.HasSuffix(spanner.ErrDesc(err), ": "+column) {
				return fmt.Errorf("queue %s: table %s has no column %s, which keeps the priorities of the messages: ALTER TABLE %s ADD COLUMN %s INT64: %w",
					q.table, q.dead.table, column, q.dead.table, column, err)
			}
			priorities = fmt.Sprintf(", Priorities: %d", q.PriorityCount())
		}
		return fmt.Errorf("queue %s: table %s is missing: create it with schema.Apply of schema.DeadLetters{Queue: ...%s}: %w",
			q.table, q.dead.table, priorities, err)
	}
	return fmt.Errorf("queue %s: table %s: %w", q.table, q.dead.table, err)
}

// Begin implements backend.Ledger. The claims have counted the starts; what was known before came with the deliveries.
func (q *Queue) Begin(_ context.Context, ds []backend.Delivery) ([]backend.Record, error) {
	before := make([]backend.Record, len(ds))
	for i, d := range ds {
		if d.Record != nil {
			before[i] = *d.Record
		}
	}
	return before, nil
}

// Keep implements backend.LedgerTx.
func (t *tx) Keep(_ context.Context, resent backend.Outgoing, r backend.Record) error {
	n := t.queue.columns.names
	first := spanner.NullTime{Time: r.First, Valid: !r.First.IsZero()}
	if acked, ok := t.acked[rowcodec.ID(resent.Key)]; ok && !first.Valid && r.Starts+r.Failures > 0 {
		first = acked.first // this delivery's was the first
	}
	return t.tx.BufferWrite([]*spanner.Mutation{t.queue.update(resent.Key,
		[]string{n.Attempts, n.Errors, n.Deferrals, n.FirstAt},
		int64(r.Starts+r.Failures), int64(r.Failures), int64(r.Deferrals), first)})
}

// Forget implements backend.LedgerTx. The record goes with the row.
func (t *tx) Forget(context.Context, backend.Delivery) error { return nil }

// Bury implements backend.LedgerTx.
func (t *tx) Bury(_ context.Context, d backend.Delivery, l backend.DeadLetter) error {
	q := t.queue
	first := spanner.NullTime{Time: l.First, Valid: !l.First.IsZero()}
	if !first.Valid {
		first = spanner.NullTime{Time: spanner.CommitTimestamp, Valid: true}
		if acked, ok := t.acked[rowcodec.ID(d.Key)]; ok && acked.first.Valid {
			first = acked.first
		}
	}
	values := append(d.Key[:len(d.Key):len(d.Key)], spanner.CommitTimestamp, q.payload.Encode(d.Payload), d.DeliverTime, l.Reason,
		spanner.NullString{StringVal: l.Error, Valid: l.Error != ""}, int64(l.Attempts), first, spanner.CommitTimestamp,
		spanner.NullString{StringVal: l.Handler, Valid: l.Handler != ""})
	if q.dead.priority != "" {
		values = append(values, int64(d.Priority))
	}
	return t.tx.BufferWrite([]*spanner.Mutation{spanner.Insert(q.dead.table, q.dead.columns, values)})
}
