package processor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
)

// leaseLength is that of the tests' emulators. It is short, so that what is left to its lease comes back soon.
const leaseLength = time.Second

// patience bounds every wait for a condition.
const patience = 60 * time.Second

// effectsTable has no unique key beyond the message's own id, and its number is only ever added to: an effect that
// happens twice shows.
const effectsTable = `CREATE TABLE Effects (Id STRING(64) NOT NULL, N INT64 NOT NULL) PRIMARY KEY (Id)`

// testQueue is the queue of all tests.
var testQueue = schema.Queue{
	Name:       "Q",
	KeyColumns: []schema.Column{{Name: "Id", Type: schema.String(64), NotNull: true}},
	Payload:    schema.Bytes(schema.Max),
}

// world is a queue and a table of effects in a database of an emulator of the test's own.
type world struct {
	t      *testing.T
	db     *emulatortest.DB
	client *spanner.Client
	queue  *queue.Queue
	lease  time.Duration // length of a lease
}

func newWorld(t *testing.T, ddl ...string) *world {
	t.Helper()
	return newWorldOf(t, leaseLength, ddl...)
}

// newWorldOf makes a world with leases of the given length.
func newWorldOf(t *testing.T, lease time.Duration, ddl ...string) *world {
	t.Helper()
	return newWorldBehind(t, front.Options{LeaseLength: lease}, ddl...)
}

// newWorldBehind makes a world with a front of its own.
func newWorldBehind(t *testing.T, o front.Options, ddl ...string) *world {
	t.Helper()
	o.IdleBound, o.ClosedBound = time.Second, 200*time.Millisecond
	e := emulatortest.New(t, emulator.Options{Front: o})
	ddl = append(ddl, testQueue.DDL(), effectsTable)
	ddl = append(ddl, schema.Attempts{Queue: testQueue}.Statements()...)
	ddl = append(ddl, schema.DeadLetters{Queue: testQueue}.Statements()...)
	w := &world{t: t, db: e.Database(t, ddl...), lease: o.LeaseLength}
	w.client = w.db.Client(t)
	w.queue = w.openQueue(w.client)
	return w
}

func (w *world) openQueue(c *spanner.Client) *queue.Queue {
	w.t.Helper()
	q, err := queue.New(c, testQueue, queue.LeaseLength(w.lease))
	require.NoError(w.t, err)
	return q
}

func (w *world) send(ids ...string) {
	w.t.Helper()
	out := make([]queue.Outgoing, len(ids))
	for i, id := range ids {
		out[i] = queue.Outgoing{Key: spanner.Key{id}, Payload: []byte("payload of " + id)}
	}
	require.NoError(w.t, w.queue.Send(w.t.Context(), out))
}

// effect is what a handler does for a message: it adds 1 to the message's number, inside the transaction.
func effect(ctx context.Context, tx *spanner.ReadWriteTransaction, id string) error {
	var n int64
	row, err := tx.ReadRow(ctx, "Effects", spanner.Key{id}, []string{"N"})
	switch {
	case err == nil:
		if err := row.Columns(&n); err != nil {
			return err
		}
	case !errors.Is(err, spanner.ErrRowNotFound):
		return err
	}
	return tx.BufferWrite([]*spanner.Mutation{spanner.InsertOrUpdate("Effects", []string{"Id", "N"}, []any{id, n + 1})})
}

func addOne(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
	return effect(ctx, tx, m.Key[0].(string))
}

// effects returns how often the effect of the message has taken place.
func (w *world) effects(id string) int64 {
	w.t.Helper()
	row, err := w.client.Single().ReadRow(w.t.Context(), "Effects", spanner.Key{id}, []string{"N"})
	if spanner.ErrCode(err) == codes.NotFound {
		return 0
	}
	require.NoError(w.t, err)
	var n int64
	require.NoError(w.t, row.Columns(&n))
	return n
}

// left returns how many messages of the id are in the queue.
func (w *world) left(id string) int {
	w.t.Helper()
	_, err := w.client.Single().ReadRow(w.t.Context(), "Q", spanner.Key{id}, []string{"Id"})
	if spanner.ErrCode(err) == codes.NotFound {
		return 0
	}
	require.NoError(w.t, err)
	return 1
}

// once asserts that the message took effect once and is gone.
func (w *world) once(ids ...string) {
	w.t.Helper()
	for _, id := range ids {
		require.EqualValues(w.t, 1, w.effects(id), "effects of %s", id)
		require.Zero(w.t, w.left(id), "%s is still in the queue", id)
	}
}

func (w *world) fault(r fault.Rule) *fault.Handle {
	w.t.Helper()
	r.Database = w.db.Name
	return w.db.Front().Faults().Add(r)
}

// applied waits until the rule's action has been applied.
func (w *world) applied(h *fault.Handle) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	require.NoError(w.t, h.Wait(ctx), "the fault was not applied: %+v", h)
}

// worker is a processor that runs.
type worker struct {
	*processor.Processor
	t      *testing.T
	cancel context.CancelFunc
	ended  chan struct{}
	err    error
	logs   *logs
}

// work runs a processor until the test ends or stops it.
func (w *world) work(f processor.TxFunc, changes ...func(*processor.Config)) *worker {
	w.t.Helper()
	return w.workOn(w.queue, f, changes...)
}

func (w *world) workOn(q *queue.Queue, f processor.TxFunc, changes ...func(*processor.Config)) *worker {
	w.t.Helper()
	return w.handle(q, processor.Tx(f), changes...)
}

// handle runs a processor with a handler of any kind.
func (w *world) handle(q *queue.Queue, h processor.Handler, changes ...func(*processor.Config)) *worker {
	w.t.Helper()
	r := &worker{t: w.t, ended: make(chan struct{}), logs: &logs{}}
	config := processor.Config{
		Concurrency:   4,
		CommitTimeout: 500 * time.Millisecond,
		Backoff:       processor.Backoff{Min: 10 * time.Millisecond, Max: 100 * time.Millisecond},
		Logger:        slog.New(slog.NewTextHandler(r.logs, nil)),
	}
	for _, change := range changes {
		change(&config)
	}
	p, err := processor.New(q, h, config)
	require.NoError(w.t, err)
	r.Processor = p
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() {
		defer close(r.ended)
		r.err = p.Run(ctx)
	}()
	w.t.Cleanup(func() {
		cancel()
		<-r.ended
		if w.t.Failed() {
			w.t.Logf("log of the processor:\n%s", r.logs)
		}
	})
	return r
}

// stop ends the processor and returns what Run returned.
func (r *worker) stop() error {
	r.t.Helper()
	r.cancel()
	select {
	case <-r.ended:
	case <-time.After(patience):
		r.t.Fatal("Run did not return")
	}
	return r.err
}

// outcome waits until n deliveries have ended so.
func (r *worker) outcome(o processor.Outcome, n int64) {
	r.t.Helper()
	wait(r.t, fmt.Sprintf("%d deliveries that are %v", n, o), func() bool { return r.Figures().Deliveries[o] >= n })
	require.Equal(r.t, n, r.Figures().Deliveries[o], "deliveries that are %v: %v", o, r.Figures().Deliveries)
}

// wait polls until the condition holds.
func wait(t *testing.T, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, patience, 2*time.Millisecond, "%s", what)
}

// logs keeps what was logged.
type logs struct {
	mu   sync.Mutex
	text []byte
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	return len(p), nil
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

// protoText is a request as text, for rules that look into it.
func protoText(m proto.Message) string { return prototext.Format(m) }
