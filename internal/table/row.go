package table

import (
	"context"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
	"github.com/spanqueue/spanqueue/schema"
)

// columnSets are the columns that are read of a row, each set the beginning of the next. A read locks the columns that it
// reads and no others: what an acknowledgement reads is not what a renewal writes, so the two do not wait for each other.
type columnSets struct {
	names  schema.QueueTableColumns
	keys   []string
	guard  []string // keys, DueTime, LeaseToken
	carry  []string // and Priority, Attempts, Errors, Deferrals, FirstAt
	all    []string // and VisibleAt, Payload
	lookup []string // what the index has: keys, Priority, VisibleAt, Shard if there is one
}

func newColumnSets(t schema.QueueTable, keys []string) columnSets {
	n := t.Columns()
	s := columnSets{names: n, keys: keys}
	s.guard = with(keys, n.DueTime, n.LeaseToken)
	s.carry = with(s.guard, n.Priority, n.Attempts, n.Errors, n.Deferrals, n.FirstAt)
	s.all = with(s.carry, n.VisibleAt, n.Payload)
	s.lookup = with(keys, n.Priority, n.VisibleAt)
	if n.Shard != "" {
		s.lookup = with(s.lookup, n.Shard)
	}
	return s
}

func with(columns []string, more ...string) []string {
	return append(columns[:len(columns):len(columns)], more...)
}

// row is what was read of a message.
type row struct {
	key spanner.Key
	due time.Time
	// claim is the claim that took the message last; empty when none did since it was sent.
	claim string
	carried
	visible time.Time
	payload []byte
}

// carried is what a message keeps when it is sent again.
type carried struct {
	priority int64
	// attempts counts claims, errors those of them that failed.
	attempts, errors, deferrals int64
	first                       spanner.NullTime
}

// record is what is known of the deliveries before this one, which attempts counts already.
func (c carried) record() backend.Record {
	r := backend.Record{
		Starts:    int(max(c.attempts-1-c.errors, 0)),
		Failures:  int(c.errors),
		Deferrals: int(c.deferrals),
	}
	if c.attempts > 1 {
		r.First = c.first.Time
	}
	return r
}

// readRow reads a row of one of the column sets guard, carry and all.
func (q *Queue) readRow(r *spanner.Row) (row, error) {
	var out row
	var err error
	if out.key, err = q.key.Read(r); err != nil {
		return out, err
	}
	var claim spanner.NullString
	into := []any{&out.due, &claim, &out.priority, &out.attempts, &out.errors, &out.deferrals, &out.first, &out.visible}
	n := len(out.key)
	for i := n; i < r.Size() && i-n < len(into); i++ {
		if err := r.Column(i, into[i-n]); err != nil {
			return out, err
		}
	}
	out.claim = claim.StringVal
	if r.Size() == len(q.columns.all) {
		out.payload, err = q.payload.Read(r, r.Size()-1)
	}
	return out, err
}

// readRows reads the rows of the keys in a transaction; those that are not there are not in the answer.
func (q *Queue) readRows(ctx context.Context, tx backend.SpannerTx, keys []spanner.Key, columns []string, o *spanner.ReadOptions) (map[string]row, error) {
	rows := make(map[string]row, len(keys))
	err := tx.ReadWithOptions(ctx, q.table, spanner.KeySetFromKeys(keys...), columns, o).Do(func(r *spanner.Row) error {
		read, err := q.readRow(r)
		rows[rowcodec.ID(read.key)] = read
		return err
	})
	return rows, err
}

// delivery returns the message as it is handed out under the lease that the row shows.
func (q *Queue) delivery(r row) (backend.Delivery, error) {
	token, err := q.tokens.join(r.claim, r.key)
	record := r.record()
	return backend.Delivery{
		Key:         r.key,
		Payload:     r.payload,
		DeliverTime: r.due,
		Token:       token,
		LeaseEnd:    r.visible,
		Priority:    int(r.priority),
		Record:      &record,
	}, err
}

// update returns the mutation that writes the columns of a row.
func (q *Queue) update(key spanner.Key, columns []string, values ...any) *spanner.Mutation {
	return spanner.Update(q.table, with(q.columns.keys, columns...), append(key[:len(key):len(key)], values...))
}

func keysOf(ds []backend.Delivery) []spanner.Key {
	keys := make([]spanner.Key, len(ds))
	for i, d := range ds {
		keys[i] = d.Key
	}
	return keys
}
