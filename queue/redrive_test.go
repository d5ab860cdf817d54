package queue_test

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
)

// dead buries one message and returns its letter.
func (w *world) dead(id string) *queue.DeadLetter {
	w.t.Helper()
	w.bury(backend.DeadLetter{Reason: "attempts", Attempts: 3}, outgoing(id)...)
	letters := w.letters(queue.DeadLetterFilter{Key: spanner.Key{id}})
	return letters[len(letters)-1]
}

// redriven asserts that the message is in the queue, once, and its letter is not.
func (w *world) redriven(id string) {
	w.t.Helper()
	require.EqualValues(w.t, 1, w.stats().Ready)
	require.Equal(w.t, "payload of "+id, string(w.stored(spanner.Key{id}).Payload))
	require.Empty(w.t, w.letters(queue.DeadLetterFilter{}))
}

// untouched asserts that the letter is there and its message is not.
func (w *world) untouched(l *queue.DeadLetter) {
	w.t.Helper()
	require.Equal(w.t, []*queue.DeadLetter{l}, w.letters(queue.DeadLetterFilter{}))
	require.Equal(w.t, queue.Stats{}, w.stats())
}

func TestRedriveMovesTheMessageBack(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func() *world{
		"queue":       func() *world { return newWorld(t, tasks) },
		"queue table": func() *world { return newTableWorld(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := make()
			w.t = t
			w.bury(backend.DeadLetter{Reason: "attempts", Attempts: 3},
				queue.Outgoing{Key: spanner.Key{"m1"}, Payload: []byte("\x00\xff"), DeliverTime: w.later()})
			l := w.letters(queue.DeadLetterFilter{})[0]
			d := w.queue.DeadLetters()
			require.NoError(t, d.Redrive(t.Context(), l.Key, l.DeadAt))
			m := w.receive(1)[0]
			require.Equal(t, l.Key, m.Key, "the same key, due now")
			require.Equal(t, []byte("\x00\xff"), m.Payload)
			require.NotEqual(t, l.DeliverTime, m.DeliverTime, "a delivery of its own")
			if name == "queue" {
				records, err := w.queue.Backend().(backend.Ledger).Begin(t.Context(), []backend.Delivery{m.Delivery()})
				require.NoError(t, err)
				require.Equal(t, []backend.Record{{}}, records, "its attempts are not inherited")
			} else {
				require.Equal(t, 1, m.Attempt)
			}
			for _, again := range []error{d.Redrive(t.Context(), l.Key, l.DeadAt), d.Discard(t.Context(), l.Key, l.DeadAt)} {
				require.ErrorIs(t, again, queue.ErrNoDeadLetter)
			}
			require.NoError(t, w.ack(m))
			require.Empty(t, w.letters(queue.DeadLetterFilter{}))
			require.Equal(t, queue.Stats{}, w.stats())
		})
	}
}

// A message that is redriven has its own priority again, whether the queue was opened by its definition or found.
func TestRedriveKeepsThePriority(t *testing.T) {
	t.Parallel()
	table := schema.QueueTable{Queue: tasks, Priorities: 3}
	w := newWorldOfTable(t, table, schema.DeadLetters{Queue: tasks, Priorities: 3})
	w.bury(backend.DeadLetter{Reason: "attempts"}, queue.Outgoing{Key: spanner.Key{"m0"}}, queue.Outgoing{Key: spanner.Key{"m2"}, Priority: 2})
	opened, err := queue.Open(t.Context(), w.client, tasks.Name)
	require.NoError(t, err)
	w.queue = opened
	letters := w.letters(queue.DeadLetterFilter{})
	require.Equal(t, []string{"m0", "m2"}, letterIDs(letters))
	require.Equal(t, []int{0, 2}, []int{letters[0].Priority, letters[1].Priority})
	result, err := w.queue.DeadLetters().RedriveAll(t.Context(), queue.DeadLetterFilter{}, queue.BulkOptions{})
	require.NoError(t, err)
	require.Equal(t, queue.BulkResult{Settled: 2}, result)
	peeked, err := w.queue.Peek(t.Context(), 10)
	require.NoError(t, err)
	require.Len(t, peeked, 2)
	for _, m := range peeked {
		want := map[any]int{"m0": 0, "m2": 2}[m.Key[0]]
		require.Equal(t, want, m.Delivery().Priority, "%v", m)
	}
}

// A table of dead letters that cannot keep the priorities is refused before a message is lost to it, or its priority.
func TestPrioritiesWithoutTheirColumn(t *testing.T) {
	t.Parallel()
	w := newWorldOfTable(t, schema.QueueTable{Queue: tasks, Priorities: 3}, schema.DeadLetters{Queue: tasks})
	err := w.queue.Backend().(backend.Ledger).CheckLedger(t.Context())
	require.ErrorContains(t, err, "ALTER TABLE TasksDeadLetters ADD COLUMN Priority INT64")
	none, err := queue.NewTable(w.client, schema.QueueTable{Queue: schema.Queue{Name: "None", KeyColumns: tasks.KeyColumns, Payload: tasks.Payload}, Priorities: 3})
	require.NoError(t, err)
	require.ErrorContains(t, none.Backend().(backend.Ledger).CheckLedger(t.Context()),
		"table NoneDeadLetters is missing: create it with schema.Apply of schema.DeadLetters{Queue: ..., Priorities: 3}")
	_, err = w.queue.DeadLetters().List(t.Context(), queue.DeadLetterFilter{}, nil, 1)
	require.ErrorContains(t, err, "ALTER TABLE TasksDeadLetters ADD COLUMN Priority INT64")
	_, err = w.queue.DeadLetters().Get(t.Context(), spanner.Key{"m1"}, time.Now())
	require.ErrorContains(t, err, "ALTER TABLE TasksDeadLetters ADD COLUMN Priority INT64")
}

func TestRedriveOfATakenKeyKeepsTheLetter(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	l := w.dead("m1")
	require.NoError(t, w.queue.Send(t.Context(), []queue.Outgoing{{Key: l.Key, Payload: []byte("sent meanwhile")}}))
	err := w.queue.DeadLetters().Redrive(t.Context(), l.Key, l.DeadAt)
	require.ErrorIs(t, err, queue.ErrExists)
	require.Equal(t, codes.AlreadyExists, spanner.ErrCode(err))
	require.ErrorContains(t, err, l.String())
	require.Equal(t, []*queue.DeadLetter{l}, w.letters(queue.DeadLetterFilter{}))
	require.Equal(t, "sent meanwhile", string(w.stored(l.Key).Payload))

	require.NoError(t, w.ack(w.stored(l.Key)))
	require.NoError(t, w.queue.DeadLetters().Redrive(t.Context(), l.Key, l.DeadAt), "once the key is free")
	w.redriven("m1")
}

// A key that died twice has two letters; each is settled by its own time.
func TestDeathsOfOneKeyAreTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	first, second := w.dead("m1"), w.dead("m1")
	require.NoError(t, w.queue.DeadLetters().Discard(t.Context(), second.Key, second.DeadAt))
	require.Equal(t, []*queue.DeadLetter{first}, w.letters(queue.DeadLetterFilter{}))
	require.Equal(t, queue.Stats{}, w.stats(), "what is discarded is not sent")
	require.NoError(t, w.queue.DeadLetters().Redrive(t.Context(), first.Key, first.DeadAt))
	w.redriven("m1")
}

// Operators who do not know of each other: one of them settles the letter, there is one message or none.
func TestOneOperatorSettlesALetter(t *testing.T) {
	t.Parallel()
	for name, discards := range map[string]int{"all redrive": 0, "one discards": 1, "all discard": 6} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tasks)
			l := w.dead("m1")
			d := w.queue.DeadLetters()
			errs := make([]error, 6)
			var operators errgroup.Group
			for i := range errs {
				operators.Go(func() error {
					if i < discards {
						errs[i] = d.Discard(t.Context(), l.Key, l.DeadAt)
					} else {
						errs[i] = d.Redrive(t.Context(), l.Key, l.DeadAt)
					}
					return nil
				})
			}
			require.NoError(t, operators.Wait())
			winner := -1
			for i, err := range errs {
				if err == nil {
					require.Equal(t, -1, winner, "two operators settled one letter")
					winner = i
					continue
				}
				require.ErrorIs(t, err, queue.ErrNoDeadLetter)
			}
			require.NotEqual(t, -1, winner)
			require.Empty(t, w.letters(queue.DeadLetterFilter{}))
			want := int64(1)
			if winner < discards {
				want = 0
			}
			require.Equal(t, want, w.stats().Ready)
		})
	}
}

// Whatever becomes of the commit's answer, the message is sent once and the letter is gone.
func TestRedriveFindsOutAboutLostAnswers(t *testing.T) {
	t.Parallel()
	for name, action := range map[string]fault.Action{
		"landed, unknown":              fault.After(codes.Unknown, "broken"),
		"landed, internal":             fault.After(codes.Internal, "broken"),
		"landed, stream reset":         streamReset(),
		"landed, deadline":             fault.After(codes.DeadlineExceeded, "late"),
		"landed, cancelled":            fault.After(codes.Canceled, "cancelled"),
		"landed, unavailable":          fault.After(codes.Unavailable, "away"),
		"landed, connection cut":       fault.CutReply(),
		"landed, forgotten":            fault.Forget(),
		"not landed, unknown":          fault.Before(codes.Unknown, "broken"),
		"not landed, internal":         fault.Before(codes.Internal, "broken"),
		"not landed, deadline":         fault.Before(codes.DeadlineExceeded, "late"),
		"not landed, aborted":          fault.Abort(),
		"not landed, no transaction":   fault.Before(codes.NotFound, "Transaction not found: 7"),
		"not landed, connection cut":   fault.Cut(),
		"not landed, too many at once": fault.Before(codes.ResourceExhausted, "too many"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tasks)
			l := w.dead("m1")
			h := w.fault(fault.Rule{Method: "Commit", Tag: "redrive=Tasks", Nth: 1, Do: action})
			require.NoError(t, w.queue.DeadLetters().Redrive(t.Context(), l.Key, l.DeadAt))
			require.Equal(t, 1, h.Applied())
			w.redriven("m1")
		})
	}
}

// A refusal is told, and keeps everything as it was.
func TestRedriveThatIsRefused(t *testing.T) {
	t.Parallel()
	for _, at := range []fault.Rule{
		{Method: "Commit", Tag: "redrive=Tasks", Nth: 1, Do: fault.Before(codes.PermissionDenied, "no INSERT")},
		{Method: "StreamingRead", Tag: "redrive=Tasks", Nth: 1, Do: fault.Before(codes.PermissionDenied, "no SELECT")},
	} {
		t.Run(at.Method, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tasks)
			l := w.dead("m1")
			h := w.fault(at)
			err := w.queue.DeadLetters().Redrive(t.Context(), l.Key, l.DeadAt)
			require.Equal(t, codes.PermissionDenied, spanner.ErrCode(err))
			require.Equal(t, 1, h.Applied())
			w.untouched(l)
			require.NoError(t, w.queue.DeadLetters().Redrive(t.Context(), l.Key, l.DeadAt))
		})
	}
}

// The end of the context while the commit is out: it is looked up once more what became of it.
func TestRedriveWhoseContextEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method string
		action fault.Action
		landed bool
	}{
		"before the read":         {"StreamingRead", fault.Hold(), false},
		"before it landed":        {"Commit", fault.Hold(), false},
		"after it landed":         {"Commit", fault.HoldReply(), true},
		"after it landed, silent": {"Commit", fault.Drop(), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// A transaction whose commit never came is ended by the database when somebody waits for its locks.
			w := newWorldWith(t, tasks, front.Options{IdleBound: 300 * time.Millisecond})
			l := w.dead("m1")
			h := w.fault(fault.Rule{Method: c.method, Tag: "redrive=Tasks", Nth: 1, Do: c.action})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- w.queue.DeadLetters().Redrive(ctx, l.Key, l.DeadAt) }()
			waitCtx, stop := context.WithTimeout(t.Context(), patience)
			defer stop()
			require.NoError(t, h.Wait(waitCtx))
			cancel()
			var err error
			select {
			case err = <-ended:
			case <-time.After(patience):
				t.Fatal("Redrive outlives its context")
			}
			if c.landed {
				require.NoError(t, err)
				w.redriven("m1")
				return
			}
			require.Equal(t, codes.Canceled, spanner.ErrCode(err))
			h.Remove()
			w.untouched(l)
			require.NoError(t, w.queue.DeadLetters().Redrive(t.Context(), l.Key, l.DeadAt), "nothing stays locked")
			w.redriven("m1")
		})
	}
}
