package lease_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/lease"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
)

// patience bounds every wait for a condition.
const patience = time.Minute

var reports = schema.Queue{
	Name:       "Reports",
	KeyColumns: []schema.Column{{Name: "Id", Type: schema.Int64(), NotNull: true}},
	Payload:    schema.Bytes(schema.Max),
}

// effectsTable takes one row for each effect, under a key of its own: an effect that happens twice shows.
const effectsTable = `CREATE TABLE Effects (Id INT64 NOT NULL, Row STRING(36) NOT NULL DEFAULT (GENERATE_UUID())) PRIMARY KEY (Id, Row)`

// world is a queue and a table of effects on an emulator of the test's own, behind a front that can be made to fail.
type world struct {
	t      *testing.T
	db     *emulatortest.DB
	length time.Duration
	queue  *queue.Queue
}

func newWorld(t *testing.T, length time.Duration, offset time.Duration) *world {
	t.Helper()
	t.Parallel()
	e := emulatortest.New(t, emulator.Options{Front: front.Options{LeaseLength: length, ClockOffset: offset}})
	w := &world{t: t, length: length, db: e.Database(t, reports.DDL(), effectsTable)}
	w.queue = w.open()
	return w
}

// open makes a queue with a client of its own.
func (w *world) open() *queue.Queue {
	w.t.Helper()
	q, err := queue.New(w.db.Client(w.t), reports, queue.LeaseLength(w.length))
	require.NoError(w.t, err)
	return q
}

func (w *world) send(ids ...int64) {
	w.t.Helper()
	var out []queue.Outgoing
	for _, id := range ids {
		out = append(out, queue.Outgoing{Key: spanner.Key{id}, Payload: []byte("work")})
	}
	require.NoError(w.t, w.queue.Send(w.t.Context(), out))
}

func (w *world) fault(r fault.Rule) *fault.Handle {
	r.Database = w.db.Name
	return w.db.Front().Faults().Add(r)
}

// renewals is a rule about renewal calls.
func renewals(nth, times int, do fault.Action) fault.Rule {
	return fault.Rule{Method: "ExecuteStreamingSql", SQL: "RENEWLEASE_", Nth: nth, Times: times, Do: do}
}

// once asserts that each message took effect once and is gone.
func (w *world) once(ids ...int64) {
	w.t.Helper()
	want := make(map[int64]int64)
	for _, id := range ids {
		want[id] = 1
	}
	got := make(map[int64]int64)
	rows := w.queue.Backend().Client().Single().Query(w.t.Context(), spanner.NewStatement("SELECT Id, COUNT(*) FROM Effects GROUP BY Id"))
	require.NoError(w.t, rows.Do(func(row *spanner.Row) error {
		var id, n int64
		err := row.Columns(&id, &n)
		got[id] = n
		return err
	}))
	require.Equal(w.t, want, got)
	s, err := w.queue.Stats(w.t.Context())
	require.NoError(w.t, err)
	require.Zero(w.t, s.Ready+s.Delayed, "messages are left in the queue")
}

// settle acknowledges the message and writes its effect, in one transaction.
func settle(ctx context.Context, q *queue.Queue, m *queue.Message) error {
	_, err := q.Backend().Client().ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		if err := q.Ack(ctx, tx, m); err != nil {
			return err
		}
		return tx.BufferWrite([]*spanner.Mutation{spanner.Insert("Effects", []string{"Id"}, []any{m.Key[0]})})
	})
	return err
}

// worker runs a receiver and handles its messages one after the other.
type worker struct {
	*lease.Receiver
	w     *world
	queue *queue.Queue
	stop  context.CancelFunc
	ended chan error
	loop  sync.WaitGroup

	mu    sync.Mutex
	calls []int64 // handler runs that were begun, by message
	errs  []error // what became of each handler run
}

// handler does the work of one message.
type handler func(ctx context.Context, q *queue.Queue, h *lease.Held) error

// work starts a worker. A nil handler only receives.
func (w *world) work(c lease.Config, handle handler) *worker {
	w.t.Helper()
	c.Logger = slog.New(slog.DiscardHandler)
	q := w.open()
	r, err := lease.NewReceiver(q, c)
	require.NoError(w.t, err)
	ctx, stop := context.WithCancel(w.t.Context())
	x := &worker{Receiver: r, w: w, queue: q, stop: stop, ended: make(chan error, 1)}
	go func() { x.ended <- r.Run(ctx) }()
	if handle != nil {
		x.loop.Go(func() { x.run(handle) })
	}
	w.t.Cleanup(stop)
	return x
}

func (x *worker) run(handle handler) {
	for {
		h, err := x.Next(context.Background())
		if err != nil {
			return
		}
		err = x.handle(h, handle)
		x.mu.Lock()
		x.errs = append(x.errs, err)
		x.mu.Unlock()
		h.Release()
	}
}

func (x *worker) handle(h *lease.Held, handle handler) error {
	if err := h.Confirm(context.Background()); err != nil {
		return err
	}
	x.mu.Lock()
	x.calls = append(x.calls, h.Message().Key[0].(int64))
	x.mu.Unlock()
	ctx, cancel := h.Context(context.Background())
	defer cancel()
	return handle(ctx, x.queue, h)
}

// begun returns the messages that the handler was begun for.
func (x *worker) begun() []int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return append([]int64{}, x.calls...)
}

// started waits until the handler has been begun once.
func (x *worker) started() {
	x.w.t.Helper()
	require.Eventually(x.w.t, func() bool { return len(x.begun()) > 0 }, patience, time.Millisecond)
}

// outcomes waits until n handler runs have ended and returns what became of them.
func (x *worker) outcomes(n int) []error {
	x.w.t.Helper()
	var errs []error
	require.Eventually(x.w.t, func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		errs = append([]error{}, x.errs...)
		return len(errs) >= n
	}, patience, 10*time.Millisecond)
	return errs
}

func (x *worker) end() {
	x.w.t.Helper()
	x.stop()
	require.NoError(x.w.t, <-x.ended)
	x.loop.Wait()
}

// lasting is a handler that works for some time, watches its context, and settles.
func lasting(d time.Duration) handler {
	return func(ctx context.Context, q *queue.Queue, h *lease.Held) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		return after(ctx, timer.C, q, h)
	}
}

// until is a handler that works until the channel is closed, watches its context, and settles.
func until(done <-chan struct{}) handler {
	return func(ctx context.Context, q *queue.Queue, h *lease.Held) error { return after(ctx, done, q, h) }
}

func after[T any](ctx context.Context, done <-chan T, q *queue.Queue, h *lease.Held) error {
	select {
	case <-done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return settle(context.Background(), q, h.Message())
}
