package table

import (
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
)

// sendAt sends messages that were due so many seconds ago, by id and priority.
func (w *world) sendAt(q *Queue, priority int, ago ...int) {
	w.t.Helper()
	now, err := q.ServerTime(w.t.Context())
	require.NoError(w.t, err)
	var out []backend.Outgoing
	for _, seconds := range ago {
		m := message(fmt.Sprintf("p%d %d", priority, seconds))
		m.Priority, m.DeliverTime = priority, now.Add(-time.Duration(seconds)*time.Second)
		out = append(out, m)
	}
	require.NoError(w.t, q.Send(w.t.Context(), out))
}

// A higher priority goes first, then what has been due for longer; what is due later holds up nothing.
func TestPriorities(t *testing.T) {
	t.Parallel()
	s := plain()
	s.Priorities = 3
	w := newWorld(t, s)
	q := w.bare(Options{LeaseLength: long})
	w.sendAt(q, 2, 500, 400)
	w.sendAt(q, 1, 10, 30, 20)
	w.sendAt(q, 0, 5)
	var later []int
	for i := range 300 { // more than a look reads
		later = append(later, -3600-i)
	}
	w.sendAt(q, 0, later...)
	w.sendAt(q, 1, later...)
	var got []backend.Delivery
	for range 3 {
		got = append(got, w.take(q, 2)...)
	}
	require.Equal(t, []string{"p0 5", "p1 30", "p1 20", "p1 10", "p2 500", "p2 400"}, keys(got))
	require.Equal(t, 2, got[5].Priority)

	m := message("x")
	for _, p := range []int{-1, 3} {
		m.Priority = p
		_, err := q.Check(m)
		require.ErrorContains(t, err, fmt.Sprintf("Priority %d", p))
		require.ErrorContains(t, err, "0 to 2")
	}
	one := &Queue{schema: plain(), key: q.key, payload: q.payload}
	m.Priority = 1
	_, err := one.Check(m)
	require.ErrorContains(t, err, "0 to 0")
}

// What a look has not found because later messages filled the answer is looked for without them.
func TestQuietQueueWithManyDelayedMessages(t *testing.T) {
	t.Parallel()
	s := plain()
	s.Shards, s.Priorities = 2, 2
	w := newWorld(t, s)
	q := w.bare(Options{LeaseLength: long, PollInterval: time.Hour})
	var later []int
	for i := range 2 * ahead {
		later = append(later, -1800-i)
	}
	w.sendAt(q, 0, later...)
	seen, err := q.look(t.Context(), 10, true)
	require.NoError(t, err)
	require.Empty(t, seen.due)
	w.sendAt(q, 1, 1, 2, 3, 4, 5, 6, 7, 8)
	seen, err = q.look(t.Context(), 10, true)
	require.NoError(t, err)
	require.Len(t, seen.due, 8)
}

// However the messages are spread, all are found; a look at an idle queue is one read, one at a busy queue is one too.
func TestShards(t *testing.T) {
	t.Parallel()
	for _, shards := range []int{2, 16, 64} {
		s := plain()
		s.Shards = shards
		w := newWorld(t, s)
		count := newRPCs()
		q := w.open(w.db.Bare(t, count.options()...), Options{LeaseLength: long})
		const n = 320
		w.send(q, ids(n)...)
		count.reset()
		_, err := q.look(t.Context(), n/shards/2, false)
		require.NoError(t, err)
		require.LessOrEqual(t, count.total(), 3, "of a busy queue few shards are read")
		ds := w.takeNow(q)
		require.Equal(t, ids(n), sortedKeys(ds))
		count.reset()
		seen, err := q.look(t.Context(), 10, true)
		require.NoError(t, err)
		require.Empty(t, seen.due)
		require.Equal(t, 1, count.total(), "%d shards: %v", shards, count)
		require.NoError(t, q.Release(t.Context(), ds))
		seen, err = q.look(t.Context(), n, true)
		require.NoError(t, err)
		require.Len(t, seen.due, n)
	}
}

// Keys of every kind, NULL parts and descending ones included, go all the way.
func TestKeysOfEveryKind(t *testing.T) {
	t.Parallel()
	parent := `CREATE TABLE Parents (Shard INT64, DueTime STRING(20)) PRIMARY KEY (Shard, DueTime)`
	q := schema.Queue{
		Name: "Order", // a reserved word
		KeyColumns: []schema.Column{
			{Name: "Shard", Type: schema.Int64()}, // names that the table wants for itself
			{Name: "DueTime", Type: schema.String(20)},
			{Name: "visibleat", Type: schema.Timestamp()},
			{Name: "LeaseToken", Type: schema.Bytes(8)},
			{Name: "Attempts", Type: schema.Numeric()},
			{Name: "Select", Type: schema.Bool()},
		},
		PrimaryKey: []schema.KeyPart{{Column: "Shard"}, {Column: "DueTime"}, {Column: "visibleat", Desc: true}, {Column: "LeaseToken"},
			{Column: "Attempts"}, {Column: "Select", Desc: true}},
		Payload:    schema.JSON(),
		Interleave: schema.Interleave{Table: "Parents", InParent: true, OnDelete: schema.Cascade},
	}
	w := &world{t: t, schema: schema.QueueTable{Queue: q, Shards: 3, Priorities: 2}}
	w.db = newDatabase(t, append([]string{parent}, w.schema.Statements()...)...)
	queue := w.bare(Options{LeaseLength: long})
	_, err := queue.client.Apply(t.Context(), []*spanner.Mutation{
		spanner.Insert("Parents", []string{"Shard", "DueTime"}, []any{7, "a"}),
		spanner.Insert("Parents", []string{"Shard", "DueTime"}, []any{nil, nil}),
	})
	require.NoError(t, err)
	at := time.Date(2020, 1, 2, 3, 4, 5, 123456789, time.UTC)
	var out []backend.Outgoing
	for _, key := range []spanner.Key{
		{7, "a", at, []byte{0, 255}, spanner.NullNumeric{}, true},
		{7, "a", nil, []byte{}, nil, false},
		{nil, nil, nil, nil, nil, nil},
	} {
		m, err := queue.Check(backend.Outgoing{Key: key, Payload: []byte(`{"n":9007199254740993}`)})
		require.NoError(t, err)
		out = append(out, m)
	}
	require.NoError(t, queue.Send(t.Context(), out[:2]))
	stmt, err := queue.SendStatement(out[2])
	require.NoError(t, err)
	_, err = queue.client.ReadWriteTransaction(t.Context(), updateOnce(stmt))
	require.NoError(t, err)

	ds := w.take(queue, 3)
	sent := make(map[string]bool)
	for _, m := range out {
		sent[rowcodec.ID(m.Key)] = true
	}
	for _, d := range ds {
		require.True(t, sent[rowcodec.ID(d.Key)], "%v", d.Key)
		require.JSONEq(t, `{"n":9007199254740993}`, string(d.Payload))
		require.Contains(t, string(d.Payload), "9007199254740993")
		answers, err := queue.Renew(t.Context(), []string{d.Token})
		require.NoError(t, err)
		require.Len(t, answers, 1)
		p, err := queue.Probe(t.Context(), d)
		require.NoError(t, err)
		require.Equal(t, backend.Present, p)
		require.NoError(t, queue.Release(t.Context(), []backend.Delivery{d}))
	}
	for _, d := range w.take(queue, 3) {
		require.NoError(t, ack(t.Context(), queue, d))
	}
	stats, err := queue.Stats(t.Context())
	require.NoError(t, err)
	require.Zero(t, stats)
}
