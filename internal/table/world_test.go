package table

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/schema"
)

func TestMain(m *testing.M) { emulatortest.Main(m) }

// patience bounds every wait for a condition.
const patience = 20 * time.Second

// long is a lease that does not end during a test.
const long = time.Minute

func queueDefinition() schema.Queue {
	return schema.Queue{
		Name:       "T",
		KeyColumns: []schema.Column{{Name: "Id", Type: schema.String(64), NotNull: true}},
		Payload:    schema.Bytes(schema.Max),
	}
}

// plain is the table of most tests.
func plain() schema.QueueTable { return schema.QueueTable{Queue: queueDefinition()} }

// world is a queue table in a database of its own.
type world struct {
	t      testing.TB
	schema schema.QueueTable
	db     *emulatortest.DB
}

func newWorld(t testing.TB, s schema.QueueTable, ddl ...string) *world {
	t.Helper()
	return &world{t: t, schema: s, db: emulatortest.Database(t, append(s.Statements(), ddl...)...)}
}

// newWorldOfItsOwn is newWorld on a fresh emulator: its clock has not drifted.
func newWorldOfItsOwn(t testing.TB, s schema.QueueTable) *world {
	t.Helper()
	return &world{t: t, schema: s, db: emulatortest.New(t, emulator.Options{}).Database(t, s.Statements()...)}
}

// bare opens the queue on the bare emulator, with a client of its own: each concurrent writer needs one there.
func (w *world) bare(o Options) *Queue {
	w.t.Helper()
	return w.open(w.db.Bare(w.t), o)
}

// front opens the queue through the front, with a client of its own.
func (w *world) front(o Options) *Queue {
	w.t.Helper()
	return w.open(w.db.Client(w.t), o)
}

func (w *world) open(c *spanner.Client, o Options) *Queue {
	w.t.Helper()
	q, err := New(c, w.schema, o)
	require.NoError(w.t, err)
	return q
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
	require.NoError(w.t, h.Wait(ctx), "the fault was not applied")
}

func message(id string) backend.Outgoing {
	return backend.Outgoing{Key: spanner.Key{id}, Payload: []byte("payload of " + id)}
}

func ids(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("m%04d", i)
	}
	return out
}

func (w *world) send(q *Queue, ids ...string) {
	w.t.Helper()
	out := make([]backend.Outgoing, len(ids))
	for i, id := range ids {
		out[i] = message(id)
	}
	require.NoError(w.t, q.Send(w.t.Context(), out))
}

// take receives n messages; they are held by q until their leases end.
func (w *world) take(q *Queue, n int) []backend.Delivery {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	var ds []backend.Delivery
	for d, err := range q.Receive(ctx, backend.ReceiveRequest{MaxDuration: patience, MaxBatch: n}) {
		require.NoError(w.t, err, "%d of %d messages were received", len(ds), n)
		ds = append(ds, d)
		if len(ds) == n {
			break
		}
	}
	require.Len(w.t, ds, n)
	return ds
}

// takeNow receives what can be had now, without waiting.
func (w *world) takeNow(q *Queue) []backend.Delivery {
	w.t.Helper()
	var ds []backend.Delivery
	for {
		seen, err := q.look(w.t.Context(), 100, false)
		require.NoError(w.t, err)
		if len(seen.due) == 0 {
			return ds
		}
		got, err := q.claim(w.t.Context(), seen.due, seen.past)
		require.NoError(w.t, err)
		ds = append(ds, got.granted...)
	}
}

func keys(ds []backend.Delivery) []string {
	var out []string
	for _, d := range ds {
		out = append(out, d.Key[0].(string))
	}
	return out
}

func sortedKeys(ds []backend.Delivery) []string {
	out := keys(ds)
	slices.Sort(out)
	return out
}

// ack takes the delivery out in a transaction of its own.
func ack(ctx context.Context, q *Queue, d backend.Delivery) error {
	return q.RunTx(ctx, backend.TxOptions{Tag: "ack"}, func(ctx context.Context, tx backend.Tx) error { return tx.Ack(ctx, d) })
}

// find returns the row of a message, and whether there is one.
func (w *world) find(q *Queue, id string) (row, bool) {
	w.t.Helper()
	r, err := q.client.Single().ReadRow(w.t.Context(), q.table, spanner.Key{id}, q.columns.all)
	if spanner.ErrCode(err) == codes.NotFound {
		return row{}, false
	}
	require.NoError(w.t, err)
	read, err := q.readRow(r)
	require.NoError(w.t, err)
	return read, true
}

// wait polls until the condition holds.
func wait(t testing.TB, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, patience, 2*time.Millisecond, "%s", what)
}
