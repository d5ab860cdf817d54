package queue_test

import (
	"context"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// patience bounds every wait for a condition.
const patience = 60 * time.Second

// effectsTable has no unique key beyond the message's own, and its number is only ever added to: an effect that happens
// twice shows.
const effectsTable = `CREATE TABLE Effects (Id STRING(64) NOT NULL, N INT64 NOT NULL) PRIMARY KEY (Id)`

// tasks is the queue of most tests.
var tasks = schema.Queue{
	Name:       "Tasks",
	KeyColumns: []schema.Column{{Name: "Id", Type: schema.String(64), NotNull: true}},
	Payload:    schema.Bytes(schema.Max),
}

// world is one queue and a table of effects in a database of the test's own.
type world struct {
	t      testing.TB
	db     *emulatortest.DB
	client *spanner.Client
	queue  *queue.Queue
}

// newWorld makes a database on the shared emulator, whose leases last as long as the service's.
func newWorld(t testing.TB, definition schema.Queue) *world {
	t.Helper()
	return worldOn(t, emulatortest.Shared(t), definition)
}

// newWorldWith makes one behind a front with options of its own.
func newWorldWith(t testing.TB, definition schema.Queue, o front.Options) *world {
	t.Helper()
	var opts []queue.Option
	if o.LeaseLength != 0 {
		opts = append(opts, queue.LeaseLength(o.LeaseLength))
	}
	return worldOn(t, emulatortest.New(t, emulator.Options{Front: o}), definition, opts...)
}

func worldOn(t testing.TB, e *emulatortest.Emulator, definition schema.Queue, opts ...queue.Option) *world {
	t.Helper()
	ddl := append([]string{definition.DDL(), effectsTable}, schema.DeadLetters{Queue: definition}.Statements()...)
	ddl = append(ddl, schema.Attempts{Queue: definition}.Statements()...)
	w := &world{t: t, db: e.Database(t, ddl...)}
	w.client = w.db.Client(t)
	var err error
	w.queue, err = queue.New(w.client, definition, opts...)
	require.NoError(t, err)
	return w
}

// send sends messages that are due now, with a payload that names them.
func (w *world) send(ids ...string) {
	w.t.Helper()
	out := make([]queue.Outgoing, len(ids))
	for i, id := range ids {
		out[i] = queue.Outgoing{Key: spanner.Key{id}, Payload: []byte("payload of " + id)}
	}
	require.NoError(w.t, w.queue.Send(w.t.Context(), out))
}

// receive takes n messages from a stream of its own.
func (w *world) receive(n int) []*queue.Message {
	w.t.Helper()
	var all []*queue.Message
	for m, err := range w.queue.Receive(w.t.Context(), queue.ReceiveOptions{MaxDuration: patience}) {
		require.NoError(w.t, err)
		if all = append(all, m); len(all) == n {
			return all
		}
	}
	w.t.Fatalf("%d messages came, %d were to come", len(all), n)
	return nil
}

// one sends a message that is due now and receives it.
func (w *world) one(id string) *queue.Message {
	w.t.Helper()
	w.send(id)
	return w.receive(1)[0]
}

// tx runs a read-write transaction.
func (w *world) tx(f func(context.Context, *spanner.ReadWriteTransaction) error) error {
	_, err := w.client.ReadWriteTransaction(w.t.Context(), f)
	return err
}

// ack acknowledges the message in a transaction of its own.
func (w *world) ack(m *queue.Message) error {
	return w.tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction) error { return w.queue.Ack(ctx, tx, m) })
}

// statement is a write beside the queue: it adds 1 to the id's number.
func statement(id string) spanner.Statement {
	return spanner.Statement{
		SQL:    "INSERT OR UPDATE INTO Effects (Id, N) VALUES (@id, 1 + IFNULL((SELECT N FROM Effects WHERE Id = @id), 0))",
		Params: map[string]any{"id": id},
	}
}

// effects returns how often the effect of the id has taken place.
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

// count returns how many messages are in the queue.
func (w *world) count() int64 {
	w.t.Helper()
	var n int64
	err := w.client.Single().Query(w.t.Context(), spanner.NewStatement("SELECT COUNT(*) FROM "+w.queue.Name())).
		Do(func(r *spanner.Row) error { return r.Columns(&n) })
	require.NoError(w.t, err)
	return n
}

// stored returns the message of the key as it lies in the queue, leased or not.
func (w *world) stored(key spanner.Key) *queue.Message {
	w.t.Helper()
	peeked, err := w.queue.Peek(w.t.Context(), 10_000)
	require.NoError(w.t, err)
	for _, m := range peeked {
		if keyText(m.Key) == keyText(key) {
			return m
		}
	}
	w.t.Fatalf("%v is not in the queue", key)
	return nil
}

// keyText writes equal keys equally, also those of a caller.
func keyText(key spanner.Key) string {
	var b strings.Builder
	for _, part := range key {
		if n, ok := part.(spanner.NullableValue); ok && n.IsNull() {
			part = nil
		}
		switch v := part.(type) {
		case nil:
			b.WriteString("NULL")
		case []byte:
			if v == nil {
				b.WriteString("NULL")
			} else {
				fmt.Fprintf(&b, "%q", v)
			}
		case time.Time:
			b.WriteString(v.UTC().Format(time.RFC3339Nano))
		case big.Rat:
			b.WriteString(v.RatString())
		default:
			fmt.Fprintf(&b, "%#v", v)
		}
		b.WriteString("|")
	}
	return b.String()
}

func (w *world) fault(r fault.Rule) *fault.Handle {
	w.t.Helper()
	r.Database = w.db.Name
	h := w.db.Front().Faults().Add(r)
	w.t.Cleanup(h.Remove)
	return h
}

// streamReset makes Google's client run a transaction function again although its commit has landed.
func streamReset() fault.Action {
	return fault.After(codes.Internal, "stream terminated by RST_STREAM with error code: INTERNAL_ERROR")
}
