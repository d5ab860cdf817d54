package table_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/schema"
)

const patience = 30 * time.Second

func definition() schema.QueueTable {
	return schema.QueueTable{Queue: schema.Queue{
		Name:       "Shop",
		KeyColumns: []schema.Column{{Name: "Id", Type: schema.String(64), NotNull: true}},
		Payload:    schema.Bytes(schema.Max),
	}}
}

const effects = `CREATE TABLE Effects (Id STRING(64) NOT NULL, N INT64 NOT NULL) PRIMARY KEY (Id)`

// shop is a queue table with the tables beside it, and a client through a front.
type shop struct {
	t      *testing.T
	db     *emulatortest.DB
	client *spanner.Client
	queue  *queue.Queue
}

func newShop(t *testing.T, d schema.QueueTable, opts ...queue.Option) *shop {
	t.Helper()
	e := emulatortest.New(t, emulator.Options{Front: front.Options{IdleBound: time.Second, ClosedBound: 200 * time.Millisecond}})
	ddl := append(d.Statements(), schema.DeadLetters{Queue: d.Queue, Priorities: d.Priorities}.Statements()...)
	s := &shop{t: t, db: e.Database(t, append(ddl, effects)...)}
	s.client = s.db.Client(t)
	var err error
	s.queue, err = queue.Open(t.Context(), s.client, d.Queue.Name, opts...)
	require.NoError(t, err)
	return s
}

func (s *shop) send(ids ...string) {
	s.t.Helper()
	out := make([]queue.Outgoing, len(ids))
	for i, id := range ids {
		out[i] = queue.Outgoing{Key: spanner.Key{id}, Payload: []byte(id)}
	}
	require.NoError(s.t, s.queue.Send(s.t.Context(), out))
}

func addOne(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
	var n int64
	row, err := tx.ReadRow(ctx, "Effects", m.Key, []string{"N"})
	switch {
	case err == nil:
		err = row.Columns(&n)
	case errors.Is(err, spanner.ErrRowNotFound):
		err = nil
	}
	if err != nil {
		return err
	}
	return tx.BufferWrite([]*spanner.Mutation{spanner.InsertOrUpdate("Effects", []string{"Id", "N"}, []any{m.Key[0], n + 1})})
}

// once asserts that each of the messages took effect once, and that the queue is empty.
func (s *shop) once(ids ...string) {
	s.t.Helper()
	got := make(map[string]int64)
	err := s.client.Single().Read(s.t.Context(), "Effects", spanner.AllKeys(), []string{"Id", "N"}).Do(func(r *spanner.Row) error {
		var id string
		var n int64
		err := r.Columns(&id, &n)
		got[id] = n
		return err
	})
	require.NoError(s.t, err)
	require.Len(s.t, got, len(ids))
	for _, id := range ids {
		require.EqualValues(s.t, 1, got[id], id)
	}
	stats, err := s.queue.Stats(s.t.Context())
	require.NoError(s.t, err)
	require.Zero(s.t, stats)
}

// work runs a processor until the test ends or the returned function is called.
func (s *shop) work(h processor.Handler, c processor.Config) (p *processor.Processor, stop func()) {
	s.t.Helper()
	c.Logger = slog.New(slog.DiscardHandler)
	c.CommitTimeout = 500 * time.Millisecond
	c.Backoff = processor.Backoff{Min: time.Millisecond, Max: 5 * time.Millisecond}
	p, err := processor.New(s.queue, h, c)
	require.NoError(s.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-ended:
				require.NoError(s.t, err)
			case <-time.After(patience):
				s.t.Error("Run did not return")
			}
		})
	}
	s.t.Cleanup(stop)
	return p, stop
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, patience, 5*time.Millisecond, "%s", what)
}

// The processor does not know what kind of queue it works on.
func TestProcessorWorksOnATable(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]schema.QueueTable{
		"plain":                 definition(),
		"shards and priorities": {Queue: definition().Queue, Shards: 4, Priorities: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, d)
			var ids []string
			for i := range 60 {
				ids = append(ids, fmt.Sprintf("m%02d", i))
			}
			p, stop := s.work(processor.Tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
				if err := addOne(ctx, tx, m); err != nil {
					return err
				}
				if m.Attempt < 2 && m.Key[0].(string) < "m10" {
					return errors.New("the first attempt fails")
				}
				return nil
			}), processor.Config{Concurrency: 8})
			s.send(ids...)
			eventually(t, "all to be done", func() bool { return p.Figures().Deliveries[processor.Done] >= 60 })
			stop()
			s.once(ids...)
			require.EqualValues(t, 10, p.Figures().Deliveries[processor.Retried])
		})
	}
}

// Open knows a queue table from a Spanner queue, and each option where it belongs.
func TestOpen(t *testing.T) {
	t.Parallel()
	d := schema.QueueTable{Queue: definition().Queue, Shards: 3}
	native := schema.Queue{Name: "N", KeyColumns: d.Queue.KeyColumns, Payload: schema.Bytes(schema.Max)}
	db := emulatortest.Database(t, append(d.Statements(), native.DDL(), effects)...)
	client := db.Client(t)

	q, err := queue.Open(t.Context(), client, "shop", queue.PollInterval(50*time.Millisecond), queue.LeaseLength(time.Minute))
	require.NoError(t, err)
	require.Equal(t, "Shop", q.Name())
	require.Equal(t, time.Minute, q.Backend().LeaseLength())
	require.NoError(t, q.Send(t.Context(), []queue.Outgoing{{Key: spanner.Key{"a"}}}))
	for m, err := range q.Receive(t.Context(), queue.ReceiveOptions{}) {
		require.NoError(t, err)
		require.Equal(t, spanner.Key{"a"}, m.Key)
		require.Equal(t, 1, m.Attempt)
		break
	}
	q, err = queue.Open(t.Context(), client, "N")
	require.NoError(t, err)
	require.Equal(t, "N", q.Name())
	err = q.Send(t.Context(), []queue.Outgoing{{Key: spanner.Key{"a"}, Priority: 1}})
	require.ErrorIs(t, err, queue.ErrInvalid)
	require.ErrorContains(t, err, "Priority is 1, and a Spanner queue has no priorities")

	for _, c := range []struct {
		open func() error
		says string
	}{
		{func() error { _, err := queue.New(client, native, queue.PollInterval(time.Second)); return err }, "PollInterval is 1s"},
		{func() error { _, err := queue.NewTable(client, d, queue.PollInterval(time.Microsecond)); return err }, "PollInterval is 1µs"},
		{func() error { _, err := queue.NewTable(client, d, queue.LeaseLength(-1)); return err }, "LeaseLength is -1ns"},
		{func() error { _, err := queue.NewTable(nil, d); return err }, "client is nil"},
		{func() error { _, err := queue.NewTable(client, schema.QueueTable{}); return err }, "Name"},
	} {
		err := c.open()
		require.ErrorIs(t, err, queue.ErrInvalid)
		require.ErrorContains(t, err, c.says)
	}
	_, err = queue.Open(t.Context(), client, "Effects")
	require.ErrorContains(t, err, "not a queue")
	_, err = queue.Open(t.Context(), client, "Nowhere")
	require.Error(t, err)
}
