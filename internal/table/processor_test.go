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
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/lease"
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
	ddl := append(d.Statements(), schema.DeadLetters{Queue: d.Queue}.Statements()...)
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

// F18: deferrals are counted apart, failures end in the dead letters, and a redriven message begins anew.
func TestF18AttemptsOnATable(t *testing.T) {
	t.Parallel()
	s := newShop(t, definition())
	var mu sync.Mutex
	var attempts []int
	redriven := false
	p, _ := s.work(processor.Tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		mu.Lock()
		attempts = append(attempts, m.Attempt)
		n, again := len(attempts), redriven
		mu.Unlock()
		switch {
		case again:
			return addOne(ctx, tx, m)
		case n <= 5:
			return processor.Snooze(0)
		}
		return errors.New("it fails")
	}), processor.Config{Concurrency: 2, MaxAttempts: 2})
	s.send("m1")
	eventually(t, "the dead letter", func() bool { return p.Figures().Deliveries[processor.DeadLettered] >= 1 })
	require.EqualValues(t, 5, p.Figures().Deliveries[processor.Snoozed])
	mu.Lock()
	require.Equal(t, []int{1, 1, 1, 1, 1, 1, 2}, attempts)
	redriven = true
	mu.Unlock()

	letters, err := s.queue.DeadLetters().List(t.Context(), queue.DeadLetterFilter{}, nil, 10)
	require.NoError(t, err)
	require.Len(t, letters, 1)
	require.Equal(t, 2, letters[0].Attempts)
	require.False(t, letters[0].FirstAt.IsZero())
	require.True(t, letters[0].FirstAt.Before(letters[0].LastAt))
	require.NoError(t, s.queue.DeadLetters().Redrive(t.Context(), letters[0].Key, letters[0].DeadAt))
	eventually(t, "the redriven message", func() bool { return p.Figures().Deliveries[processor.Done] >= 1 })
	s.once("m1")
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, 1, attempts[len(attempts)-1], "it begins anew")
}

// A message whose handlers never report an outcome, as when it kills its process, is given up by its row's own count.
func TestStartsWithoutOutcome(t *testing.T) {
	t.Parallel()
	s := newShop(t, definition(), queue.LeaseLength(100*time.Millisecond))
	s.send("killer")
	for range 3 { // three claims that end with the process
		for m, err := range s.queue.Receive(t.Context(), queue.ReceiveOptions{MaxDuration: patience}) {
			require.NoError(t, err)
			require.NotZero(t, m.Attempt)
			break
		}
	}
	p, stop := s.work(processor.Tx(func(context.Context, *spanner.ReadWriteTransaction, *queue.Message) error {
		t.Error("the handler was started once more")
		return nil
	}), processor.Config{MaxAttempts: 2})
	eventually(t, "the dead letter", func() bool { return p.Figures().Deliveries[processor.DeadLettered] >= 1 })
	stop()
	letters, err := s.queue.DeadLetters().List(t.Context(), queue.DeadLetterFilter{}, nil, 10)
	require.NoError(t, err)
	require.Len(t, letters, 1)
	require.Equal(t, 3, letters[0].Attempts)
}

// A deferral sends the message again under another due time; the holder acknowledges it without a token.
func TestDeferOnATable(t *testing.T) {
	t.Parallel()
	s := newShop(t, schema.QueueTable{Queue: definition().Queue, Priorities: 4}, queue.LeaseLength(time.Second))
	require.NoError(t, s.queue.Send(t.Context(), []queue.Outgoing{{Key: spanner.Key{"m1"}, Payload: []byte("one"), Priority: 3}}))
	r, err := lease.NewReceiver(s.queue, lease.Config{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	held, err := r.Next(t.Context())
	require.NoError(t, err)
	require.NoError(t, held.Confirm(t.Context()), "a renewal succeeds, by the token that it came with")
	require.NoError(t, held.Checkpoint(t.Context(), []byte("two"), 1500*time.Millisecond))
	first := held.Message()
	held.Release()

	again, err := r.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, "two", string(again.Message().Payload))
	require.Equal(t, 2, again.Message().Attempt, "the start goes on")
	require.Equal(t, 3, again.Message().Delivery().Priority)
	_, err = s.client.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		return s.queue.Ack(ctx, tx, first)
	})
	require.ErrorIs(t, err, queue.ErrNotHeld, "its time was over, and another has it")
	_, err = s.client.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		return s.queue.Resend(ctx, tx, again.Message(), again.Message().DeliverTime.Add(time.Hour), nil)
	})
	require.NoError(t, err)
	again.Release()
	cancel()
	require.NoError(t, <-ended)
	peeked, err := s.queue.Peek(t.Context(), 5)
	require.NoError(t, err)
	require.Len(t, peeked, 1)
	require.Equal(t, 3, peeked[0].Delivery().Priority, "a resend keeps the priority")
}

// F13 and the stop: what has begun is finished, what has not comes back.
func TestStopOnATable(t *testing.T) {
	t.Parallel()
	s := newShop(t, definition(), queue.LeaseLength(time.Second))
	started, finish := make(chan struct{}), make(chan struct{})
	var once sync.Once
	_, stop := s.work(processor.Tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		once.Do(func() { close(started) })
		<-finish
		return addOne(ctx, tx, m)
	}), processor.Config{Concurrency: 1})
	s.send("m1", "m2", "m3")
	<-started
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop()
	}()
	close(finish)
	<-stopped
	stats, err := s.queue.Stats(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, stats.Ready, "the one that had begun was committed")
	p, stop := s.work(processor.Tx(addOne), processor.Config{})
	eventually(t, "the others", func() bool { return p.Figures().Deliveries[processor.Done] >= 2 })
	stop()
	s.once("m1", "m2", "m3")
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

// Whatever happens to commits, each message takes effect once: two processors, and a commit in five that is aborted, is
// answered with an error although it landed, or is not answered at all.
func TestEachMessageTakesEffectOnceUnderFaults(t *testing.T) {
	t.Parallel()
	s := newShop(t, schema.QueueTable{Queue: definition().Queue, Shards: 2}, queue.LeaseLength(time.Second))
	var ids []string
	for i := range 150 {
		ids = append(ids, fmt.Sprintf("m%03d", i))
	}
	s.send(ids...)
	handles := s.faults()
	handler := processor.Tx(addOne)
	one, stopOne := s.work(handler, processor.Config{Concurrency: 4})
	other, stopOther := s.work(handler, processor.Config{Concurrency: 4})
	eventually(t, "the queue to be empty", func() bool {
		stats, err := s.queue.Stats(t.Context())
		return err == nil && stats == queue.Stats{}
	})
	stopOne()
	stopOther()
	s.once(ids...)
	for _, h := range handles {
		require.NotZero(t, h.Applied(), "a fault was not applied: %v", h.Records())
	}
	t.Logf("deliveries: %v and %v", one.Figures().Deliveries, other.Figures().Deliveries)
}

// faults makes a commit in five fail, or seem to.
func (s *shop) faults() []*fault.Handle {
	s.t.Helper()
	var handles []*fault.Handle
	for _, r := range []fault.Rule{
		{Name: "abort", Probability: 0.08, Do: fault.Abort()},
		{Name: "landed, unknown", Probability: 0.04, Do: fault.After(codes.Unknown, "who knows")},
		{Name: "landed, reset", Probability: 0.04, Do: fault.After(codes.Internal, "stream terminated by RST_STREAM with error code: INTERNAL_ERROR")},
		{Name: "landed, unavailable", Probability: 0.04, Do: fault.After(codes.Unavailable, "try again")},
		{Name: "did not land", Probability: 0.04, Do: fault.Before(codes.Internal, "something broke")},
		{Name: "no answer", Nth: 70, Times: 2, Do: fault.Drop()},
		{Name: "late", Nth: 90, Times: 2, Do: fault.DelayReply(700 * time.Millisecond)},
	} {
		r.Method, r.Database, r.Seed = "Commit", s.db.Name, 7
		handles = append(handles, s.db.Front().Faults().Add(r))
	}
	return handles
}

// The messages of one key take effect in their order, whatever happens to commits.
func TestOrderHoldsUnderFaults(t *testing.T) {
	t.Parallel()
	d := schema.QueueTable{OrderColumns: 1, Shards: 2, Queue: schema.Queue{
		Name: "Shop",
		KeyColumns: []schema.Column{
			{Name: "Account", Type: schema.String(20), NotNull: true},
			{Name: "Id", Type: schema.Int64(), NotNull: true},
		},
		Payload: schema.Bytes(schema.Max),
	}}
	s := newShop(t, d, queue.LeaseLength(time.Second))
	const accounts, each = 8, 12
	for n := range each {
		var out []queue.Outgoing
		for a := range accounts {
			out = append(out, queue.Outgoing{Key: spanner.Key{fmt.Sprint("account", a), n}})
		}
		require.NoError(t, s.queue.Send(t.Context(), out))
	}
	handles := s.faults()
	// The effect of a message is that it is the next number of its account: it fails where it is not.
	handler := processor.Tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		var next int64
		row, err := tx.ReadRow(ctx, "Effects", spanner.Key{m.Key[0]}, []string{"N"})
		if err == nil {
			err = row.Columns(&next)
		} else if errors.Is(err, spanner.ErrRowNotFound) {
			err = nil
		}
		if err != nil {
			return err
		}
		if next != m.Key[1].(int64) {
			return processor.Discard(fmt.Errorf("%v came when %d was to", m.Key, next))
		}
		return tx.BufferWrite([]*spanner.Mutation{spanner.InsertOrUpdate("Effects", []string{"Id", "N"}, []any{m.Key[0], next + 1})})
	})
	one, stopOne := s.work(handler, processor.Config{Concurrency: 4})
	other, stopOther := s.work(handler, processor.Config{Concurrency: 4})
	eventually(t, "the queue to be empty", func() bool {
		stats, err := s.queue.Stats(t.Context())
		return err == nil && stats == queue.Stats{}
	})
	stopOne()
	stopOther()
	for _, p := range []*processor.Processor{one, other} {
		require.Zero(t, p.Figures().Deliveries[processor.Discarded], "%v", p.Figures().Deliveries)
	}
	got := 0
	err := s.client.Single().Read(t.Context(), "Effects", spanner.AllKeys(), []string{"N"}).Do(func(r *spanner.Row) error {
		var n int64
		err := r.Columns(&n)
		require.EqualValues(t, each, n)
		got++
		return err
	})
	require.NoError(t, err)
	require.Equal(t, accounts, got)
	for _, h := range handles {
		require.NotZero(t, h.Applied(), "a fault was not applied")
	}
}
