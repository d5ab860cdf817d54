package queuesql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	spannerdriver "github.com/googleapis/go-sql-spanner"
	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuesql"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
)

// leaseLength is that of the tests' emulators. It is short, so that what is left to its lease comes back soon.
const leaseLength = 3 * time.Second

// patience bounds every wait for a condition.
const patience = 60 * time.Second

// An effect adds to a number, so that one that happens twice shows.
const effectsTable = `CREATE TABLE Effects (Id STRING(64) NOT NULL, N INT64 NOT NULL) PRIMARY KEY (Id)`

var testQueue = schema.Queue{
	Name:       "Q",
	KeyColumns: []schema.Column{{Name: "Id", Type: schema.String(64), NotNull: true}},
	Payload:    schema.Bytes(schema.Max),
}

// world is a queue and a table of effects in a database that is worked on by database/sql.
type world struct {
	t     *testing.T
	em    *emulatortest.DB
	db    *sql.DB
	queue *queue.Queue
}

func newWorld(t *testing.T, ddl ...string) *world {
	t.Helper()
	e := emulatortest.New(t, emulator.Options{Front: front.Options{
		LeaseLength: leaseLength,
		IdleBound:   time.Second,
		ClosedBound: 200 * time.Millisecond,
	}})
	ddl = append(ddl, testQueue.DDL(), effectsTable)
	ddl = append(ddl, schema.Attempts{Queue: testQueue}.Statements()...)
	ddl = append(ddl, schema.DeadLetters{Queue: testQueue}.Statements()...)
	w := &world{t: t, em: e.Database(t, ddl...)}
	w.db = w.open(nil)
	client, release, err := queuesql.Client(t.Context(), w.db)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, release()) })
	w.queue, err = queue.New(client, testQueue, queue.LeaseLength(leaseLength))
	require.NoError(t, err)
	return w
}

// open opens the database by the driver, with connection parameters.
func (w *world) open(params map[string]string) *sql.DB {
	w.t.Helper()
	name := strings.Split(w.em.Name, "/")
	all := map[string]string{"useplaintext": "true"}
	for k, v := range params {
		all[k] = v
	}
	connector, err := spannerdriver.CreateConnector(spannerdriver.ConnectorConfig{
		Host: w.em.Endpoint(), Project: name[1], Instance: name[3], Database: name[5], Params: all,
	})
	require.NoError(w.t, err)
	db := sql.OpenDB(connector)
	w.t.Cleanup(func() { require.NoError(w.t, db.Close()) })
	return db
}

func (w *world) send(ids ...string) {
	w.t.Helper()
	require.NoError(w.t, spannerdriver.RunTransaction(w.t.Context(), w.db, nil, func(ctx context.Context, tx *sql.Tx) error {
		for _, id := range ids {
			if err := queuesql.Send(ctx, tx, w.queue, queue.Outgoing{Key: spanner.Key{id}, Payload: []byte("payload of " + id)}); err != nil {
				return err
			}
		}
		return nil
	}))
}

// receive takes one message from the queue.
func (w *world) receive() *queue.Message {
	w.t.Helper()
	for m, err := range w.queue.Receive(w.t.Context(), queue.ReceiveOptions{MaxDuration: time.Minute}) {
		require.NoError(w.t, err)
		return m
	}
	w.t.Fatal("the stream has ended")
	return nil
}

func effect(ctx context.Context, tx *sql.Tx, id string) error {
	var n int64
	err := tx.QueryRowContext(ctx, "SELECT N FROM Effects WHERE Id = @id", sql.Named("id", id)).Scan(&n)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT OR UPDATE INTO Effects (Id, N) VALUES (@id, @n)", sql.Named("id", id), sql.Named("n", n+1))
	return err
}

func addOne(ctx context.Context, tx *sql.Tx, m *queue.Message) error {
	return effect(ctx, tx, m.Key[0].(string))
}

func (w *world) count(query, id string) (n int64) {
	w.t.Helper()
	err := w.db.QueryRowContext(w.t.Context(), query, sql.Named("id", id)).Scan(&n)
	require.NoError(w.t, err)
	return n
}

// effects returns how often the effect of the message has taken place.
func (w *world) effects(id string) int64 {
	w.t.Helper()
	return w.count("SELECT COALESCE(SUM(N), 0) FROM Effects WHERE Id = @id", id)
}

// left returns how many messages of the id are in the queue.
func (w *world) left(id string) int64 {
	w.t.Helper()
	return w.count("SELECT COUNT(*) FROM Q WHERE Id = @id", id)
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
	r.Database = w.em.Name
	return w.em.Front().Faults().Add(r)
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
func (w *world) work(f queuesql.HandlerFunc, changes ...func(*processor.Config)) *worker {
	w.t.Helper()
	return w.handle(queuesql.Handler(w.db, f), changes...)
}

func (w *world) handle(h processor.Handler, changes ...func(*processor.Config)) *worker {
	w.t.Helper()
	r := &worker{t: w.t, ended: make(chan struct{}), logs: &logs{}}
	config := processor.Config{
		Concurrency:   4,
		CommitTimeout: time.Second,
		Backoff:       processor.Backoff{Min: 10 * time.Millisecond, Max: 100 * time.Millisecond},
		Logger:        slog.New(slog.NewTextHandler(r.logs, nil)),
	}
	for _, change := range changes {
		change(&config)
	}
	p, err := processor.New(w.queue, h, config)
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

// stop ends the processor and wants it to end well.
func (r *worker) stop() {
	r.t.Helper()
	r.cancel()
	select {
	case <-r.ended:
	case <-time.After(patience):
		r.t.Fatal("Run did not return")
	}
	require.NoError(r.t, r.err)
}

// outcome waits until n deliveries have ended so.
func (r *worker) outcome(o processor.Outcome, n int64) {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return r.Figures().Deliveries[o] >= n }, patience, 2*time.Millisecond, "%d deliveries that are %v", n, o)
	require.Equal(r.t, n, r.Figures().Deliveries[o], "deliveries that are %v: %v", o, r.Figures().Deliveries)
}

// logs keeps what was logged.
type logs struct {
	mu   sync.Mutex
	text strings.Builder
}

var _ io.Writer = (*logs)(nil)

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func numbered(prefix string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint(prefix, i)
	}
	return ids
}
