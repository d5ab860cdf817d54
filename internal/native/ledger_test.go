package native_test

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/native"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

func TestMain(m *testing.M) { emulatortest.Main(m) }

var tasks = schema.Queue{
	Name:       "Tasks",
	KeyColumns: []schema.Column{{Name: "Starts", Type: schema.String(10)}}, // the name of a column of the ledger's own
	Payload:    schema.Bytes(schema.Max),
}

// world is a queue with its ledger.
type world struct {
	*native.Queue
	t      *testing.T
	db     *emulatortest.DB
	client *spanner.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ddl := []string{tasks.DDL()}
	ddl = append(ddl, schema.Attempts{Queue: tasks}.Statements()...)
	ddl = append(ddl, schema.DeadLetters{Queue: tasks}.Statements()...)
	w := &world{t: t, db: emulatortest.Database(t, ddl...)}
	w.client = w.db.Client(t)
	var err error
	w.Queue, err = native.New(w.client, tasks, native.Options{})
	require.NoError(t, err)
	return w
}

// send sends a message and returns its delivery as a receiver sees it. The zero time means now.
func (w *world) send(key any, at time.Time) backend.Delivery {
	w.t.Helper()
	m, err := w.Check(backend.Outgoing{Key: spanner.Key{key}, Payload: []byte("p"), DeliverTime: at})
	require.NoError(w.t, err)
	require.NoError(w.t, w.Send(w.t.Context(), []backend.Outgoing{m}))
	ds, err := w.Peek(w.t.Context(), 100)
	require.NoError(w.t, err)
	for _, d := range ds {
		if d.Key.String() == m.Key.String() {
			return d
		}
	}
	w.t.Fatalf("%v is not in the queue", m.Key)
	return backend.Delivery{}
}

func (w *world) begin(ds ...backend.Delivery) []backend.Record {
	w.t.Helper()
	records, err := w.Begin(w.t.Context(), ds)
	require.NoError(w.t, err)
	require.Len(w.t, records, len(ds))
	return records
}

// resend sends the delivery again at the time, with a record.
func (w *world) resend(d backend.Delivery, at time.Time, r backend.Record) backend.Delivery {
	w.t.Helper()
	again := backend.Outgoing{Key: d.Key, Payload: d.Payload, DeliverTime: at}
	err := w.RunTx(w.t.Context(), backend.TxOptions{}, func(ctx context.Context, tx backend.Tx) error {
		if err := tx.Ack(ctx, d); err != nil {
			return err
		}
		if err := tx.Send(ctx, again); err != nil {
			return err
		}
		return tx.(backend.LedgerTx).Keep(ctx, again, r)
	})
	require.NoError(w.t, err)
	d.DeliverTime = at
	return d
}

// records returns how many records of attempts there are.
func (w *world) records() (n int64) {
	w.t.Helper()
	err := w.client.Single().Query(w.t.Context(), spanner.NewStatement("SELECT COUNT(*) FROM TasksAttempts")).
		Do(func(r *spanner.Row) error { return r.Columns(&n) })
	require.NoError(w.t, err)
	return n
}

func (w *world) fault(r fault.Rule) *fault.Handle {
	r.Database = w.db.Name
	h := w.db.Front().Faults().Add(r)
	w.t.Cleanup(h.Remove)
	return h
}

// streamReset makes Google's client run a transaction function again although its commit has landed.
func streamReset() fault.Action {
	return fault.After(codes.Internal, "stream terminated by RST_STREAM with error code: INTERNAL_ERROR")
}

func TestBeginCountsStarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, key := range []any{"m1", "", nil} {
		d := w.send(key, time.Time{})
		require.Equal(t, []backend.Record{{}}, w.begin(d), "%v", d.Key)
		second := w.begin(d)[0]
		require.Equal(t, 1, second.Starts)
		require.False(t, second.First.IsZero())
		third := w.begin(d)[0]
		require.Equal(t, 2, third.Starts)
		require.Equal(t, second.First, third.First, "the first start keeps its time")
	}
}

func TestBeginCountsABatchInOneTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.send("a", time.Time{}), w.send("b", time.Time{})
	w.begin(a)
	commits := w.fault(fault.Rule{Method: "Commit", Tag: "attempts=Tasks", Do: fault.Delay(0)})
	records := w.begin(b, a)
	require.Equal(t, []int{0, 1}, []int{records[0].Starts, records[1].Starts})
	require.Equal(t, 1, commits.Matched())
}

// A run again after a lost answer does not count twice; one after a commit that did not land counts once.
func TestBeginIsIdempotentOnARunAgain(t *testing.T) {
	t.Parallel()
	for name, action := range map[string]fault.Action{
		"landed":  streamReset(),
		"aborted": fault.Abort(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			d := w.send("m1", time.Time{})
			w.begin(d)
			h := w.fault(fault.Rule{Method: "Commit", Tag: "attempts=Tasks", Nth: 1, Do: action})
			require.Equal(t, 1, w.begin(d)[0].Starts, "what was known before this start")
			require.Equal(t, 1, h.Applied())
			require.Equal(t, 2, w.begin(d)[0].Starts)
		})
	}
}

// A record counts for one delivery: an older message of the key leaves it nothing.
func TestBeginInheritsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.send("m1", time.Time{})
	w.begin(d)
	_, err := w.Purge(t.Context(), 10)
	require.NoError(t, err)
	fresh := w.send("m1", time.Time{})
	require.Equal(t, backend.Record{}, w.begin(fresh)[0])
	require.Equal(t, 1, w.begin(fresh)[0].Starts)
}

// A holder whose message was sent again meanwhile does not touch the record that goes with it.
func TestStaleHolderLeavesTheRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.send("m1", time.Time{})
	w.begin(old)
	now, err := w.ServerTime(t.Context())
	require.NoError(t, err)
	again := w.resend(old, now.Add(time.Hour), backend.Record{Failures: 3, Deferrals: 2})
	w.begin(again)
	require.Equal(t, backend.Record{}, w.begin(old)[0])
	require.NoError(t, w.TakeBack(t.Context(), old))
	r := w.begin(again)[0]
	require.Equal(t, []int{1, 3, 2}, []int{r.Starts, r.Failures, r.Deferrals})
}

func readsQueue(c fault.Call) bool {
	read, ok := c.Request.(*spannerpb.ReadRequest)
	return ok && read.GetTable() == tasks.Name
}

// A record for a later time may be of an earlier message: the one that was to be retried in an hour and was purged. The
// new message's starts are counted all the same, or one that kills its process would never be found out.
func TestRecordOfALaterTimeMayBeStale(t *testing.T) {
	t.Parallel()
	for name, mayRead := range map[string]bool{"the queue tells": true, "without SELECT it is believed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			now, err := w.ServerTime(t.Context())
			require.NoError(t, err)
			w.resend(w.send("m1", time.Time{}), now.Add(time.Hour), backend.Record{Failures: 3})
			_, err = w.Purge(t.Context(), 10)
			require.NoError(t, err)
			fresh := w.send("m1", time.Time{})
			if !mayRead {
				w.fault(fault.Rule{Method: "StreamingRead", Match: readsQueue, Do: fault.After(codes.PermissionDenied, "no SELECT")})
			}
			require.Equal(t, backend.Record{}, w.begin(fresh)[0])
			want := 0
			if mayRead {
				want = 1
			}
			require.Equal(t, want, w.begin(fresh)[0].Starts)
		})
	}
}

func TestTakeBack(t *testing.T) {
	t.Parallel()
	for name, action := range map[string]fault.Action{
		"nothing breaks": fault.Delay(0),
		"landed":         streamReset(),
		"aborted":        fault.Abort(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			d := w.send("m1", time.Time{})
			require.NoError(t, w.TakeBack(t.Context(), d), "nothing is on record")
			for range 3 {
				w.begin(d)
			}
			h := w.fault(fault.Rule{Method: "Commit", Tag: "attempts=Tasks", Nth: 1, Do: action})
			require.NoError(t, w.TakeBack(t.Context(), d))
			require.Equal(t, 1, h.Applied())
			require.Equal(t, 2, w.begin(d)[0].Starts, "one start is taken back, once")
		})
	}
}

func TestBuryAndForget(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.send("m1", time.Time{})
	w.begin(d)
	first := w.begin(d)[0].First
	bury := func(d backend.Delivery, l backend.DeadLetter) error {
		return w.RunTx(t.Context(), backend.TxOptions{}, func(ctx context.Context, tx backend.Tx) error {
			if err := tx.Ack(ctx, d); err != nil {
				return err
			}
			return tx.(backend.LedgerTx).Bury(ctx, d, l)
		})
	}
	require.NoError(t, bury(d, backend.DeadLetter{Reason: "r", Error: "e", Attempts: 3, First: first, Handler: "h"}))
	require.Zero(t, w.records(), "the record goes with the message")
	require.ErrorIs(t, bury(d, backend.DeadLetter{Reason: "r"}), backend.ErrNotHeld)
	// The same key can die again.
	d = w.send("m1", time.Time{})
	require.Equal(t, backend.Record{}, w.begin(d)[0])
	require.NoError(t, bury(d, backend.DeadLetter{Reason: "again"}))

	type letter struct {
		Payload         []byte
		DeliverTime     time.Time
		Reason          string
		Error, Handler  spanner.NullString
		Attempts        int64
		FirstAt, LastAt spanner.NullTime
		DeadAt          time.Time
	}
	var letters []letter
	err := w.client.Single().Query(t.Context(), spanner.NewStatement(
		"SELECT Payload, DeliverTime, Reason, Error, Handler, Attempts, FirstAt, LastAt, DeadAt FROM TasksDeadLetters ORDER BY DeadAt")).
		Do(func(r *spanner.Row) error {
			letters = append(letters, letter{})
			return r.ToStruct(&letters[len(letters)-1])
		})
	require.NoError(t, err)
	require.Len(t, letters, 2)
	require.Equal(t, "p", string(letters[0].Payload))
	require.Equal(t, []string{"r", "e", "h"}, []string{letters[0].Reason, letters[0].Error.StringVal, letters[0].Handler.StringVal})
	require.EqualValues(t, 3, letters[0].Attempts)
	require.Equal(t, first, letters[0].FirstAt.Time)
	require.Equal(t, letters[0].DeadAt, letters[0].LastAt.Time)
	require.Equal(t, "again", letters[1].Reason)
	require.False(t, letters[1].Error.Valid)
	require.Equal(t, d.DeliverTime, letters[1].DeliverTime)
	require.Equal(t, letters[1].DeadAt, letters[1].FirstAt.Time, "the only attempt was the last one")
}

func TestCheckLedgerNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	full := newWorld(t)
	require.NoError(t, full.CheckLedger(t.Context()))
	for missing, ddl := range map[string][]string{
		"TasksAttempts":    schema.DeadLetters{Queue: tasks}.Statements(),
		"TasksDeadLetters": schema.Attempts{Queue: tasks}.Statements(),
	} {
		db := emulatortest.Database(t, append(ddl, tasks.DDL())...)
		q, err := native.New(db.Client(t), tasks, native.Options{})
		require.NoError(t, err)
		err = q.CheckLedger(t.Context())
		require.Equal(t, codes.NotFound, spanner.ErrCode(err))
		require.ErrorContains(t, err, missing)
		require.ErrorContains(t, err, "schema.Apply")
	}
}

// A start whose commit was lost is taken back if it landed, and nobody else's if it did not.
func TestTakeBackOfALostStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault   fault.Rule
		counted bool // as far as Begin knows
	}{
		"landed":            {fault.Rule{Method: "Commit", Do: fault.After(codes.Unknown, "who knows")}, true},
		"did not land":      {fault.Rule{Method: "Commit", Do: fault.Before(codes.Unknown, "who knows")}, true},
		"was never written": {fault.Rule{Method: "StreamingRead", Times: 5, Do: fault.Before(codes.Unknown, "who knows")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			d := w.send("m1", time.Time{})
			w.begin(d) // of a process that was killed
			c.fault.Tag, c.fault.Nth = "attempts=Tasks", 1
			h := w.fault(c.fault)
			known, err := w.Begin(t.Context(), []backend.Delivery{d})
			require.Equal(t, codes.Unknown, spanner.ErrCode(err), "%v", err)
			h.Remove()
			if c.counted {
				require.Len(t, known, 1)
				lost := d
				lost.Record = &known[0]
				require.NoError(t, w.TakeBack(t.Context(), lost))
			} else {
				require.Nil(t, known)
			}
			require.Equal(t, 1, w.begin(d)[0].Starts, "the start of the process that was killed stays")
		})
	}
}
