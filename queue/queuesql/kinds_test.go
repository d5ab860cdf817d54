package queuesql_test

import (
	"context"
	"database/sql"
	"errors"
	"math/big"
	"testing"
	"time"

	"cloud.google.com/go/civil"
	"cloud.google.com/go/spanner"
	spannerdriver "github.com/googleapis/go-sql-spanner"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuesql"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
)

var testTable = schema.QueueTable{Queue: schema.Queue{
	Name:       "T",
	KeyColumns: []schema.Column{{Name: "Id", Type: schema.String(64), NotNull: true}},
	Payload:    schema.Bytes(schema.Max),
}}

// A queue table: sent, retried, handled once, and its holder fenced by the claim.
func TestQueueTable(t *testing.T) {
	t.Parallel()
	ddl := append(testTable.Statements(), schema.DeadLetters{Queue: testTable.Queue}.Statements()...)
	w := newWorld(t, ddl...)
	table, err := queue.NewTable(w.queue.Backend().Client(), testTable, queue.LeaseLength(leaseLength), queue.PollInterval(20*time.Millisecond))
	require.NoError(t, err)
	w.queue = table
	w.send("m1")
	first := w.receive()
	require.Eventually(t, func() bool { // the claim of the first holder has ended when there is a second one
		second := w.receive()
		return second.Lease.Token != first.Lease.Token
	}, patience, time.Millisecond)
	require.ErrorIs(t, queuesql.Ack(t.Context(), begin(t, w.db), table, first), queue.ErrNotHeld)

	failed := false
	r := w.work(func(ctx context.Context, tx *sql.Tx, m *queue.Message) error {
		if err := addOne(ctx, tx, m); err != nil {
			return err
		}
		if !failed {
			failed = true
			return errors.New("not yet")
		}
		return nil
	}, func(c *processor.Config) { c.Concurrency = 1 })
	w.send("m2")
	r.outcome(processor.Done, 2)
	r.outcome(processor.Retried, 1)
	r.stop()
	require.EqualValues(t, 1, w.effects("m1"))
	require.EqualValues(t, 1, w.effects("m2"))
	require.Zero(t, w.count("SELECT COUNT(*) FROM T WHERE Id != @id", "none"))
}

func TestOrderedTableIsRefused(t *testing.T) {
	t.Parallel()
	ordered := schema.QueueTable{Queue: schema.Queue{
		Name: "O",
		KeyColumns: []schema.Column{
			{Name: "Line", Type: schema.String(64), NotNull: true},
			{Name: "Id", Type: schema.String(64), NotNull: true},
		},
		Payload: schema.Bytes(schema.Max),
	}, OrderColumns: 1}
	w := newWorld(t)
	q, err := queue.NewTable(w.queue.Backend().Client(), ordered)
	require.NoError(t, err)
	_, err = processor.New(q, queuesql.Handler(w.db, addOne), processor.Config{})
	require.ErrorIs(t, err, processor.ErrInvalid)
	require.ErrorContains(t, err, "order")
}

// Key parts and payloads of every type that the emulator has go through database/sql, NULL too.
func TestTypes(t *testing.T) {
	t.Parallel()
	column := func(name string, typ schema.Type) schema.Column { return schema.Column{Name: name, Type: typ} }
	all := schema.Queue{
		Name: "Typed",
		KeyColumns: []schema.Column{
			column("I", schema.Int64()), column("S", schema.String(10)), column("B", schema.Bytes(10)), column("L", schema.Bool()),
			column("T", schema.Timestamp()), column("D", schema.Date()), column("N", schema.Numeric()),
		},
		Payload: schema.JSON(),
	}
	text := schema.Queue{Name: "Text", KeyColumns: []schema.Column{column("I", schema.Int64())}, Payload: schema.String(schema.Max)}
	w := newWorld(t, all.DDL(), text.DDL())
	for _, c := range []struct {
		definition schema.Queue
		key        spanner.Key
		payload    string
	}{
		{all, spanner.Key{int64(7), "s", []byte("b"), true, time.Unix(1, 5).UTC(), civil.Date{Year: 2026, Month: 2, Day: 3}, *big.NewRat(5, 4)}, `{"n":9007199254740993}`},
		{all, spanner.Key{nil, nil, nil, nil, nil, nil, nil}, `null`},
		{text, spanner.Key{int64(1)}, "text"},
		{text, spanner.Key{nil}, ""},
	} {
		q, err := queue.New(w.queue.Backend().Client(), c.definition, queue.LeaseLength(leaseLength))
		require.NoError(t, err)
		at := time.Now().Add(-time.Hour).UTC().Truncate(time.Microsecond)
		out := queue.Outgoing{Key: c.key, Payload: []byte(c.payload), DeliverTime: at}
		send := func(ctx context.Context, tx *sql.Tx) error { return queuesql.Send(ctx, tx, q, out) }
		require.NoError(t, spannerdriver.RunTransaction(t.Context(), w.db, nil, send), "%v", c.key)
		err = spannerdriver.RunTransaction(t.Context(), w.db, nil, send)
		require.ErrorIs(t, err, queue.ErrExists, "%v", c.key)
		messages, err := q.Peek(t.Context(), 10)
		require.NoError(t, err)
		require.Len(t, messages, 1)
		require.Equal(t, c.payload, string(messages[0].Payload))
		require.NoError(t, spannerdriver.RunTransaction(t.Context(), w.db, nil, func(ctx context.Context, tx *sql.Tx) error {
			return queuesql.Ack(ctx, tx, q, messages[0])
		}), "%v", c.key)
		messages, err = q.Peek(t.Context(), 10)
		require.NoError(t, err)
		require.Empty(t, messages)
	}
}

// A message is there if the transaction commits, and what could not be stored is refused before anything is written.
func TestSend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	out := queue.Outgoing{Key: spanner.Key{"m1"}}
	tx := begin(t, w.db)
	require.NoError(t, queuesql.Send(t.Context(), tx, w.queue, out))
	require.NoError(t, tx.Rollback())
	require.Zero(t, w.left("m1"))

	tx = begin(t, w.db)
	err := queuesql.Send(t.Context(), tx, w.queue, out, queue.Outgoing{Key: spanner.Key{int64(1)}})
	require.ErrorIs(t, err, queue.ErrInvalid)
	require.NoError(t, tx.Commit())
	require.Zero(t, w.left("m1"))

	tx = begin(t, w.db)
	require.NoError(t, queuesql.Send(t.Context(), tx, w.queue, out, queue.Outgoing{Key: spanner.Key{"m2"}}))
	require.NoError(t, tx.Commit())
	require.EqualValues(t, 1, w.left("m1"))
	require.EqualValues(t, 1, w.left("m2"))
}

// The client lives as long as it is held, whatever becomes of db's other connections.
func TestClientIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	db := w.open(nil)
	client, release, err := queuesql.Client(t.Context(), db)
	require.NoError(t, err)
	db.SetMaxIdleConns(-1)
	var n int64
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT 1").Scan(&n))
	q, err := queue.New(client, testQueue)
	require.NoError(t, err)
	_, err = q.Stats(t.Context())
	require.NoError(t, err)
	require.NoError(t, release())
	require.NoError(t, release(), "once is enough")
	_, err = q.Stats(t.Context())
	require.Error(t, err, "the driver has closed its client")
}
