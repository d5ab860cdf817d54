package queue_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuetest"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// tasksTable is tasks as a queue table.
var tasksTable = schema.QueueTable{Queue: tasks, Shards: 2}

// newTableWorld makes a world whose queue is a queue table.
func newTableWorld(t testing.TB) *world {
	t.Helper()
	return newWorldOfTable(t, tasksTable, schema.DeadLetters{Queue: tasks})
}

func newWorldOfTable(t testing.TB, table schema.QueueTable, letters schema.DeadLetters) *world {
	t.Helper()
	w := &world{t: t, db: emulatortest.Database(t, append(table.Statements(), letters.Statements()...)...)}
	w.client = w.db.Client(t)
	var err error
	w.queue, err = queue.NewTable(w.client, table)
	require.NoError(t, err)
	return w
}

// bury sends messages and gives them up in one transaction: their letters have the same time of death.
func (w *world) bury(l backend.DeadLetter, messages ...queue.Outgoing) {
	w.t.Helper()
	require.NoError(w.t, w.queue.Send(w.t.Context(), messages))
	peeked, err := w.queue.Peek(w.t.Context(), 10_000)
	require.NoError(w.t, err)
	there := make(map[string]*queue.Message)
	for _, m := range peeked {
		there[keyText(m.Key)] = m
	}
	var ds []backend.Delivery
	for _, m := range messages {
		normal, err := w.queue.Backend().Check(backend.Outgoing{Key: m.Key})
		require.NoError(w.t, err)
		ds = append(ds, there[keyText(normal.Key)].Delivery())
	}
	err = w.queue.Backend().RunTx(w.t.Context(), backend.TxOptions{}, func(ctx context.Context, tx backend.Tx) error {
		if _, err := tx.AckAll(ctx, ds); err != nil {
			return err
		}
		for _, d := range ds {
			if err := tx.(backend.LedgerTx).Bury(ctx, d, l); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(w.t, err)
}

// letters returns all dead letters that the filter chooses.
func (w *world) letters(f queue.DeadLetterFilter) []*queue.DeadLetter {
	w.t.Helper()
	all, err := w.queue.DeadLetters().List(w.t.Context(), f, nil, 10_000)
	require.NoError(w.t, err)
	return all
}

func letterIDs(letters []*queue.DeadLetter) (all []string) {
	for _, l := range letters {
		all = append(all, l.Key[0].(string))
	}
	return all
}

func TestDeadLetterShowsAllOfTheMessage(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]*world{"queue": newWorld(t, tasks), "queue table": newTableWorld(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w.t = t
			first := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
			w.bury(backend.DeadLetter{Reason: "attempts", Error: "no luck", Attempts: 3, First: first, Handler: "h"},
				queue.Outgoing{Key: spanner.Key{"m1"}, Payload: []byte("\x00\xff"), DeliverTime: w.later()})
			w.bury(backend.DeadLetter{Reason: "no outcome"}, outgoing("m2")...)
			letters := w.letters(queue.DeadLetterFilter{})
			require.Equal(t, []string{"m1", "m2"}, letterIDs(letters))
			require.Nil(t, letters[0].Payload)
			l, err := w.queue.DeadLetters().Get(t.Context(), spanner.Key{"m1"}, letters[0].DeadAt)
			require.NoError(t, err)
			require.Equal(t, []byte("\x00\xff"), l.Payload)
			l.Payload = nil
			require.Equal(t, letters[0], l)
			require.Equal(t, []string{"attempts", "no luck", "h"}, []string{l.Reason, l.Error, l.Handler})
			require.Equal(t, 3, l.Attempts)
			require.Equal(t, first, l.FirstAt)
			require.Equal(t, l.DeadAt, l.LastAt)
			require.Equal(t, 123456789, l.DeliverTime.Nanosecond())
			require.Equal(t, []string{"no outcome", "", ""}, []string{letters[1].Reason, letters[1].Error, letters[1].Handler})
			require.Contains(t, l.String(), `("m1") dead at 20`)
		})
	}
}

func TestListOfDeadLettersFilters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	w.bury(backend.DeadLetter{Reason: "attempts", Error: "HTTP 500: oops", Handler: "mail"}, outgoing("a")...)
	w.bury(backend.DeadLetter{Reason: "attempts", Error: "HTTP 404", Handler: "sms"}, outgoing("b")...)
	w.bury(backend.DeadLetter{Reason: "handler"}, outgoing("c")...)
	w.bury(backend.DeadLetter{Reason: "attempts"}, outgoing("a")...)
	all := w.letters(queue.DeadLetterFilter{})
	require.Equal(t, []string{"a", "b", "c", "a"}, letterIDs(all), "the oldest first")
	for _, c := range []struct {
		filter queue.DeadLetterFilter
		want   []string
	}{
		{queue.DeadLetterFilter{Key: spanner.Key{"a"}}, []string{"a", "a"}},
		{queue.DeadLetterFilter{Key: spanner.Key{"nobody"}}, nil},
		{queue.DeadLetterFilter{Reason: "attempts"}, []string{"a", "b", "a"}},
		{queue.DeadLetterFilter{Handler: "sms"}, []string{"b"}},
		{queue.DeadLetterFilter{Error: "HTTP"}, []string{"a", "b"}},
		{queue.DeadLetterFilter{Error: "500"}, []string{"a"}},
		{queue.DeadLetterFilter{Error: "%"}, nil},
		{queue.DeadLetterFilter{From: all[1].DeadAt}, []string{"b", "c", "a"}},
		{queue.DeadLetterFilter{Until: all[2].DeadAt}, []string{"a", "b"}},
		{queue.DeadLetterFilter{From: all[1].DeadAt, Until: all[3].DeadAt, Reason: "attempts", Handler: "sms", Error: "404"}, []string{"b"}},
	} {
		require.Equal(t, c.want, letterIDs(w.letters(c.filter)), "%+v", c.filter)
	}
}

// Pages of every size show each letter once: those of one time, NULL keys and keys in descending order too.
func TestListOfDeadLettersInPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, schema.Queue{
		Name:       "Mails",
		KeyColumns: []schema.Column{{Name: "DeadAt", Type: schema.String(20)}, {Name: "Num", Type: schema.Int64()}},
		PrimaryKey: []schema.KeyPart{{Column: "DeadAt", Desc: true}, {Column: "Num"}},
		Payload:    schema.Bytes(10),
	})
	var together []queue.Outgoing
	for _, name := range []any{nil, "", "a", "b"} {
		for _, num := range []any{nil, math.MinInt64, 0} {
			together = append(together, queue.Outgoing{Key: spanner.Key{name, num}})
		}
	}
	w.bury(backend.DeadLetter{Reason: "r"}, together...)
	w.bury(backend.DeadLetter{Reason: "r"}, together[4], together[9])
	w.bury(backend.DeadLetter{Reason: "r"}, together[4])
	all := w.letters(queue.DeadLetterFilter{})
	require.Len(t, all, len(together)+3)
	for size := 1; size <= 4; size++ {
		var paged []*queue.DeadLetter
		var after *queue.DeadLetter
		for {
			page, err := w.queue.DeadLetters().List(t.Context(), queue.DeadLetterFilter{}, after, size)
			require.NoError(t, err)
			require.LessOrEqual(t, len(page), size)
			paged = append(paged, page...)
			if len(page) < size {
				break
			}
			after = page[size-1]
			require.LessOrEqual(t, len(paged), len(all))
		}
		require.Equal(t, all, paged, "pages of %d", size)
	}
	mine := w.letters(queue.DeadLetterFilter{Key: spanner.Key{nil, spanner.NullInt64{}}})
	require.Len(t, mine, 1)
}

func TestDeadLettersRefuseBadArguments(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	d := w.queue.DeadLetters()
	now := time.Now()
	bad := spanner.Key{1}
	calls := map[string]func() error{
		"list of none": func() error { _, err := d.List(t.Context(), queue.DeadLetterFilter{}, nil, 0); return err },
		"list by key":  func() error { _, err := d.List(t.Context(), queue.DeadLetterFilter{Key: bad}, nil, 1); return err },
		"list after": func() error {
			_, err := d.List(t.Context(), queue.DeadLetterFilter{}, &queue.DeadLetter{Key: bad}, 1)
			return err
		},
		"get":     func() error { _, err := d.Get(t.Context(), bad, now); return err },
		"redrive": func() error { return d.Redrive(t.Context(), bad, now) },
		"discard": func() error { return d.Discard(t.Context(), bad, now) },
		"redrive all": func() error {
			_, err := d.RedriveAll(t.Context(), queue.DeadLetterFilter{Key: bad}, queue.BulkOptions{})
			return err
		},
	}
	for _, rate := range []float64{-1, math.NaN(), math.Inf(1)} {
		calls[fmt.Sprint("rate ", rate)] = func() error {
			_, err := d.DiscardAll(t.Context(), queue.DeadLetterFilter{}, queue.BulkOptions{Rate: rate})
			return err
		}
	}
	for name, call := range calls {
		require.ErrorIs(t, call(), queue.ErrInvalid, name)
	}
	_, err := d.Get(t.Context(), spanner.Key{"nobody"}, now)
	require.ErrorIs(t, err, queue.ErrNoDeadLetter)
	require.ErrorContains(t, err, `Tasks, ("nobody") dead at 20`)
}

func TestDeadLettersOfAQueueWithoutATable(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, tasks.DDL())
	bare, err := queue.New(db.Client(t), tasks)
	require.NoError(t, err)
	memory := queuetest.New(tasks, queuetest.Options{})
	for name, c := range map[string]struct {
		queue *queue.Queue
		says  string
	}{
		"no table":  {bare, "table TasksDeadLetters is missing: create it with schema.Apply"},
		"in memory": {memory.Queue(), "in memory"},
	} {
		d := c.queue.DeadLetters()
		key, now := spanner.Key{"m1"}, time.Now()
		_, listErr := d.List(t.Context(), queue.DeadLetterFilter{}, nil, 1)
		_, getErr := d.Get(t.Context(), key, now)
		_, allErr := d.RedriveAll(t.Context(), queue.DeadLetterFilter{}, queue.BulkOptions{})
		for _, err := range []error{listErr, getErr, allErr, d.Redrive(t.Context(), key, now), d.Discard(t.Context(), key, now)} {
			require.ErrorContains(t, err, c.says, name)
			require.NotErrorIs(t, err, queue.ErrNoDeadLetter, name)
			if name == "no table" {
				require.Contains(t, []codes.Code{codes.NotFound, codes.InvalidArgument}, spanner.ErrCode(err))
			}
		}
	}
}
