package deadletter

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
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
	KeyColumns: []schema.Column{{Name: "Order", Type: schema.String(10)}, {Name: "Num", Type: schema.Int64()}},
	Payload:    schema.Bytes(schema.Max),
}

func store(t *testing.T, client *spanner.Client) *Store {
	t.Helper()
	q, err := native.New(client, tasks, native.Options{})
	require.NoError(t, err)
	s, err := New(q)
	require.NoError(t, err)
	return s
}

func TestTextOfAPage(t *testing.T) {
	t.Parallel()
	s := store(t, new(spanner.Client))
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const selects = "SELECT `Order`, `Num`, `DeadAt`, `DeliverTime`, `Reason`, `Error`, `Attempts`, `FirstAt`, `LastAt`, `Handler` FROM `TasksDeadLetters`"
	const order = " ORDER BY `DeadAt`, `Order`, `Num` LIMIT @n"

	all := s.pageStatement(Filter{}, nil, 7)
	require.Equal(t, selects+order, all.SQL)
	require.Equal(t, map[string]any{"n": int64(7)}, all.Params)

	some := s.pageStatement(Filter{
		Key: spanner.Key{spanner.NullString{}, int64(1)}, Reason: "r", Handler: "h", Error: "e", From: at, Until: at.Add(1),
	}, nil, 7)
	require.Equal(t, selects+" WHERE `Order` IS NULL AND `Num` = @p1 AND `Reason` = @p2 AND `Handler` = @p3"+
		" AND STRPOS(`Error`, @p4) > 0 AND `DeadAt` >= @p5 AND `DeadAt` < @p6"+order, some.SQL)
	require.Equal(t, map[string]any{"n": int64(7), "p1": int64(1), "p2": "r", "p3": "h", "p4": "e", "p5": at, "p6": at.Add(1)}, some.Params)

	next := s.pageStatement(Filter{}, &ID{Key: spanner.Key{"a", spanner.NullInt64{}}, DeadAt: at}, 7)
	require.Equal(t, selects+" WHERE (`DeadAt` > @dead OR `DeadAt` = @dead AND `Order` > @p2"+
		" OR `DeadAt` = @dead AND `Order` = @p3 AND `Num` IS NOT NULL)"+order, next.SQL)
}

// world is a queue with one dead letter.
type world struct {
	*Store
	db     *emulatortest.DB
	letter ID
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return worldOn(t, emulatortest.Shared(t))
}

func worldOn(t *testing.T, e *emulatortest.Emulator) *world {
	t.Helper()
	db := e.Database(t, append(schema.DeadLetters{Queue: tasks}.Statements(), tasks.DDL())...)
	client := db.Client(t)
	w := &world{Store: store(t, client), db: db, letter: ID{Key: spanner.Key{"a", spanner.NullInt64{}}}}
	n := w.names
	stamp, err := client.Apply(t.Context(), []*spanner.Mutation{spanner.InsertMap(w.table, map[string]any{
		"Order": "a", "Num": nil, n.DeadAt: spanner.CommitTimestamp, n.Payload: []byte("p"), n.DeliverTime: time.Now(),
		n.Reason: "r", n.Attempts: 1,
	})})
	require.NoError(t, err)
	w.letter.DeadAt = stamp
	return w
}

func (w *world) fault(t *testing.T, r fault.Rule) *fault.Handle {
	r.Database = w.db.Name
	h := w.db.Front().Faults().Add(r)
	t.Cleanup(h.Remove)
	return h
}

func (w *world) messages(t *testing.T) int {
	t.Helper()
	ds, err := w.queue.Peek(t.Context(), 10)
	require.NoError(t, err)
	return len(ds)
}

// A commit that is never answered is not waited for longer than the bound.
func TestCommitWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for name, action := range map[string]fault.Action{"landed": fault.Drop(), "not landed": fault.Hold()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// A transaction whose commit never came is ended by the database when somebody waits for its locks.
			w := worldOn(t, emulatortest.New(t, emulator.Options{Front: front.Options{IdleBound: 300 * time.Millisecond}}))
			w.timeouts.commit = 300 * time.Millisecond
			h := w.fault(t, fault.Rule{Method: "Commit", Nth: 1, Do: action})
			began := time.Now()
			require.NoError(t, w.Redrive(t.Context(), w.letter))
			require.Less(t, time.Since(began), 10*time.Second)
			require.Equal(t, 1, h.Applied())
			require.Equal(t, 1, w.messages(t))
			_, err := w.Get(t.Context(), w.letter)
			require.ErrorIs(t, err, ErrGone)
		})
	}
}

// What cannot be learned within the bound is said to be unknown; aborts without end are not put up with either.
func TestSettlingGivesUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		action fault.Action
		code   codes.Code
		says   string
	}{
		"unknown": {fault.Before(codes.Unknown, "broken"), codes.Unknown, "it may still land"},
		"aborted": {fault.Abort(), codes.Aborted, "aborted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.timeouts.resolve = 200 * time.Millisecond
			h := w.fault(t, fault.Rule{Method: "Commit", Do: c.action})
			err := w.Redrive(t.Context(), w.letter)
			require.Equal(t, c.code, spanner.ErrCode(err))
			require.ErrorContains(t, err, c.says)
			require.Greater(t, h.Applied(), 1)
			require.Zero(t, w.messages(t))
			_, err = w.Get(t.Context(), w.letter)
			require.NoError(t, err)
		})
	}
}

func TestCallOfAnEndedContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, codes.Canceled, spanner.ErrCode(w.Discard(ctx, w.letter)))
	_, err := w.Get(t.Context(), w.letter)
	require.NoError(t, err)
}

// A letter that the queue does not take any more, since its definition has changed, is kept.
func TestLetterThatTheQueueRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	narrow := tasks
	narrow.Payload = schema.String(schema.Max)
	q, err := native.New(w.client, narrow, native.Options{})
	require.NoError(t, err)
	w.queue = refusing{q}
	require.ErrorContains(t, w.Redrive(t.Context(), w.letter), "what the queue does not take")
	_, err = w.Get(t.Context(), w.letter)
	require.NoError(t, err)
}

// refusing is a queue that takes no payload.
type refusing struct{ backend.Queue }

func (refusing) Check(m backend.Outgoing) (backend.Outgoing, error) {
	return m, context.DeadlineExceeded
}
