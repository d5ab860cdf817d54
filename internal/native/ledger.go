package native

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
	"github.com/spanqueue/spanqueue/schema"
	"google.golang.org/api/iterator"
	"google.golang.org/grpc/codes"
)

var (
	_ backend.Ledger   = (*Queue)(nil)
	_ backend.LedgerTx = tx{}
)

// ledger names the tables beside a queue.
type ledger struct {
	attempts        schema.Attempts
	attemptsTable   string
	attemptsColumns []string // the queue's key columns, then those of row.values
	dead            schema.DeadLetters
	deadTable       string
	deadColumns     []string
}

func newLedger(q schema.Queue, keys []string) ledger {
	l := ledger{attempts: schema.Attempts{Queue: q}, dead: schema.DeadLetters{Queue: q}}
	l.attemptsTable, l.deadTable = l.attempts.TableName(), l.dead.TableName()
	a := l.attempts.Columns()
	l.attemptsColumns = append(append([]string{}, keys...), a.DeliverTime, a.Starts, a.Errors, a.Deferrals, a.FirstAt, a.LastAt)
	d := l.dead.Columns()
	l.deadColumns = append(append([]string{}, keys...), d.DeadAt, d.Payload, d.DeliverTime, d.Reason, d.Error, d.Attempts,
		d.FirstAt, d.LastAt, d.Handler)
	return l
}

// row is one row of the attempts table.
type row struct {
	key         spanner.Key
	deliverTime time.Time
	record      backend.Record
}

func (q *Queue) readRow(r *spanner.Row) (row, error) {
	key, err := q.key.Read(r)
	if err != nil {
		return row{}, err
	}
	out := row{key: key}
	var starts, failures, deferrals int64
	for i, into := range []any{&out.deliverTime, &starts, &failures, &deferrals, &out.record.First} {
		if err := r.Column(len(key)+i, into); err != nil {
			return row{}, err
		}
	}
	out.record.Starts, out.record.Failures, out.record.Deferrals = int(starts), int(failures), int(deferrals)
	return out, nil
}

// write returns the mutation that puts a record down for a delivery. First is the commit's own time when there is none.
func (q *Queue) write(key spanner.Key, deliverTime time.Time, r backend.Record) *spanner.Mutation {
	first := r.First
	if first.IsZero() {
		first = spanner.CommitTimestamp
	}
	values := append(append([]any{}, key...), deliverTime, int64(r.Starts), int64(r.Failures), int64(r.Deferrals), first, spanner.CommitTimestamp)
	return spanner.InsertOrUpdate(q.ledger.attemptsTable, q.ledger.attemptsColumns, values)
}

// CheckLedger implements backend.Ledger. It asks for both tables at once: every Run waits for it.
func (q *Queue) CheckLedger(ctx context.Context) error {
	var checks sync.WaitGroup
	var attempts, dead error
	checks.Go(func() { attempts = q.checkTable(ctx, "schema.Attempts", q.ledger.attemptsTable) })
	checks.Go(func() { dead = q.checkTable(ctx, "schema.DeadLetters", q.ledger.deadTable) })
	checks.Wait()
	return errors.Join(attempts, dead) // who misses one table misses both, usually
}

func (q *Queue) checkTable(ctx context.Context, element, table string) error {
	it := q.client.Single().ReadWithOptions(ctx, table, spanner.AllKeys(), q.key.Columns(), &spanner.ReadOptions{Limit: 1})
	_, err := it.Next()
	it.Stop()
	switch {
	case err == nil, err == iterator.Done, spanner.ErrCode(err) == codes.PermissionDenied:
		return nil // a role may be allowed to write and not to read
	case spanner.ErrCode(err) == codes.NotFound:
		return fmt.Errorf("queue %s: table %s is missing: create it with schema.Apply of %s{Queue: ...}: %w",
			q.definition.Name, table, element, err)
	}
	return fmt.Errorf("queue %s: table %s: %w", q.definition.Name, table, err)
}

// readRows reads the records of the deliveries' keys and keeps them locked until the transaction ends.
func (q *Queue) readRows(ctx context.Context, t *spanner.ReadWriteTransaction, ds []backend.Delivery) (map[string]row, error) {
	keys := make([]spanner.Key, len(ds))
	for i, d := range ds {
		keys[i] = d.Key
	}
	rows := make(map[string]row)
	it := t.ReadWithOptions(ctx, q.ledger.attemptsTable, spanner.KeySetFromKeys(keys...), q.ledger.attemptsColumns, backend.Exclusive())
	err := it.Do(func(r *spanner.Row) error {
		read, err := q.readRow(r)
		rows[rowcodec.ID(read.key)] = read
		return err
	})
	return rows, err
}

// Begin implements backend.Ledger.
func (q *Queue) Begin(ctx context.Context, ds []backend.Delivery) ([]backend.Record, error) {
	var known []backend.Record   // by the last run that came to its commit
	targets := make(map[int]int) // the starts that an earlier run of the function wanted on record, by index
	_, err := q.client.ReadWriteTransactionWithOptions(ctx, func(ctx context.Context, t *spanner.ReadWriteTransaction) error {
		before := make([]backend.Record, len(ds))
		rows, err := q.readRows(ctx, t, ds)
		if err != nil {
			return err
		}
		if err := q.dropStale(ctx, t, ds, rows); err != nil {
			return err
		}
		var writes []*spanner.Mutation
		for i, d := range ds {
			r, found := rows[rowcodec.ID(d.Key)]
			if found && r.deliverTime.After(d.DeliverTime) {
				continue // the message has been sent again: its record is not ours to change, and our ack will miss
			}
			if found && r.deliverTime.Equal(d.DeliverTime) {
				before[i] = r.record
			}
			if target, again := targets[i]; again && before[i].Starts == target {
				before[i].Starts-- // the commit of the run before has landed
				continue
			}
			counted := before[i]
			counted.Starts++
			targets[i] = counted.Starts
			writes = append(writes, q.write(d.Key, d.DeliverTime, counted))
		}
		known = before
		return t.BufferWrite(writes)
	}, backend.TxOptions{Tag: q.tag("attempts")}.Transaction())
	if err != nil {
		return known, fmt.Errorf("queue: count the starts of %d messages of %s: %w", len(ds), q.definition.Name, err)
	}
	return known, nil
}

// dropStale takes those records out of rows that are of an earlier message, although they are for a later time: a message
// that was to be retried in an hour was purged, and its key was sent anew. Without this such a message would never be
// counted. Whether the delivery or the record is the younger one, only the queue can tell.
func (q *Queue) dropStale(ctx context.Context, t *spanner.ReadWriteTransaction, ds []backend.Delivery, rows map[string]row) error {
	var keys []spanner.Key
	for _, d := range ds {
		if r, found := rows[rowcodec.ID(d.Key)]; found && r.deliverTime.After(d.DeliverTime) {
			keys = append(keys, d.Key)
		}
	}
	if len(keys) == 0 || q.cannotSelect.Load() {
		return nil
	}
	columns := append(q.key.Columns(), schema.DeliverTimeColumn)
	present := make(map[string]time.Time, len(keys))
	err := t.Read(ctx, q.definition.Name, spanner.KeySetFromKeys(keys...), columns).Do(func(r *spanner.Row) error {
		key, err := q.key.Read(r)
		if err != nil {
			return err
		}
		var at time.Time
		err = r.Column(len(key), &at)
		present[rowcodec.ID(key)] = at
		return err
	})
	if spanner.ErrCode(err) == codes.PermissionDenied {
		return nil // a role that may only delete: then the record is believed
	}
	if err != nil {
		return err
	}
	for _, d := range ds {
		id := rowcodec.ID(d.Key)
		if at, ok := present[id]; ok && at.Equal(d.DeliverTime) && rows[id].deliverTime.After(at) {
			delete(rows, id)
		}
	}
	return nil
}

// TakeBack implements backend.Ledger.
func (q *Queue) TakeBack(ctx context.Context, d backend.Delivery) error {
	target := -1 // the starts that an earlier run of the function wanted on record
	_, err := q.client.ReadWriteTransactionWithOptions(ctx, func(ctx context.Context, t *spanner.ReadWriteTransaction) error {
		rows, err := q.readRows(ctx, t, []backend.Delivery{d})
		if err != nil {
			return err
		}
		r, found := rows[rowcodec.ID(d.Key)]
		if !found || !r.deliverTime.Equal(d.DeliverTime) || r.record.Starts == 0 || r.record.Starts == target {
			return nil // nothing is on record for it, or the commit of the run before has landed
		}
		if d.Record != nil && r.record.Starts <= d.Record.Starts {
			return nil // the start never came to be: those on record are others'
		}
		r.record.Starts--
		target = r.record.Starts
		return t.BufferWrite([]*spanner.Mutation{q.write(d.Key, d.DeliverTime, r.record)})
	}, backend.TxOptions{Tag: q.tag("attempts")}.Transaction())
	if err != nil {
		return fmt.Errorf("queue: take back a start in %s: %w", q.definition.Name, err)
	}
	return nil
}

// Keep implements backend.LedgerTx.
func (t tx) Keep(_ context.Context, resent backend.Outgoing, r backend.Record) error {
	return t.tx.BufferWrite([]*spanner.Mutation{t.queue.write(resent.Key, resent.DeliverTime, r)})
}

// Forget implements backend.LedgerTx.
func (t tx) Forget(_ context.Context, d backend.Delivery) error {
	return t.tx.BufferWrite([]*spanner.Mutation{spanner.Delete(t.queue.ledger.attemptsTable, d.Key)})
}

// Bury implements backend.LedgerTx.
func (t tx) Bury(ctx context.Context, d backend.Delivery, l backend.DeadLetter) error {
	q := t.queue
	first := spanner.NullTime{Time: l.First, Valid: !l.First.IsZero()}
	if !first.Valid {
		first = spanner.NullTime{Time: spanner.CommitTimestamp, Valid: true}
	}
	values := append(append([]any{}, d.Key...), spanner.CommitTimestamp, q.payload.Encode(d.Payload), d.DeliverTime, l.Reason,
		spanner.NullString{StringVal: l.Error, Valid: l.Error != ""}, int64(l.Attempts), first, spanner.CommitTimestamp,
		spanner.NullString{StringVal: l.Handler, Valid: l.Handler != ""})
	if err := t.tx.BufferWrite([]*spanner.Mutation{spanner.Insert(q.ledger.deadTable, q.ledger.deadColumns, values)}); err != nil {
		return err
	}
	return t.Forget(ctx, d)
}
