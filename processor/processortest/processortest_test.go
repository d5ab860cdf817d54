package processortest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/processor/processortest"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuetest"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
)

var orders = schema.Queue{
	Name:       "Orders",
	KeyColumns: []schema.Column{{Name: "Id", Type: schema.String(64), NotNull: true}},
	Payload:    schema.String(schema.Max),
}

var quiet = processor.Config{Logger: slog.New(slog.DiscardHandler)}

const effects = `CREATE TABLE Effects (Id STRING(64) NOT NULL, N INT64 NOT NULL) PRIMARY KEY (Id)`

func onEmulator(t *testing.T) (*emulatortest.DB, *queue.Queue) {
	t.Helper()
	const length = time.Second
	e := emulatortest.New(t, emulator.Options{Front: front.Options{LeaseLength: length}})
	ddl := []string{orders.DDL(), effects}
	ddl = append(ddl, schema.Attempts{Queue: orders}.Statements()...)
	ddl = append(ddl, schema.DeadLetters{Queue: orders}.Statements()...)
	db := e.Database(t, ddl...)
	q, err := queue.New(db.Client(t), orders, queue.LeaseLength(length))
	require.NoError(t, err)
	return db, q
}

func send(t *testing.T, q *queue.Queue, ids ...string) {
	t.Helper()
	for _, id := range ids {
		require.NoError(t, q.Send(t.Context(), []queue.Outgoing{{Key: spanner.Key{id}, Payload: []byte("for " + id)}}))
	}
}

// nothing is a handler that touches no transaction, so that it runs in memory too; its n-th call fails with what is given.
func nothing(fail map[int64]error) processor.Handler {
	var calls atomic.Int64
	return processor.Tx(func(context.Context, *spanner.ReadWriteTransaction, *queue.Message) error {
		return fail[calls.Add(1)]
	})
}

// failure is a TB that says what it was failed with. It panics, as a real Fatalf does not return either.
type failure struct{}

func (failure) Helper()                           {}
func (failure) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func failed(f func(processortest.TB)) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = v.(string)
		}
	}()
	f(failure{})
	return ""
}

// workAndDrain is the same on every kind of queue.
func workAndDrain(t *testing.T, q *queue.Queue) {
	require.Contains(t, failed(func(t processortest.TB) { processortest.WorkOnce(t, q, nothing(nil), quiet) }), "no message of queue Orders is due")
	require.Empty(t, processortest.Drain(t, q, nothing(nil), quiet))

	send(t, q, "a", "b", "c")
	require.Equal(t, processor.Done, processortest.WorkOnce(t, q, nothing(nil), quiet))
	messages, err := q.Peek(t.Context(), 10)
	require.NoError(t, err)
	require.Len(t, messages, 2, "one was handled, and no other")
	require.Equal(t, processor.Discarded, processortest.WorkOnce(t, q, nothing(map[int64]error{1: processor.Discard(errors.New("no"))}), quiet))

	send(t, q, "d")
	before, err := q.ServerTime(t.Context())
	require.NoError(t, err)
	got := processortest.Drain(t, q, nothing(map[int64]error{1: processor.Snooze(time.Hour)}), quiet)
	require.Equal(t, map[processor.Outcome]int64{processor.Done: 1, processor.Snoozed: 1}, got)
	messages, err = q.Peek(t.Context(), 10)
	require.NoError(t, err)
	require.Len(t, messages, 1)
	queuetest.RequireDue(t, q, messages[0].Key, before.Add(time.Hour), 30*time.Second)
}

// DrainAll waits for what is due later, and says what is left when that takes too long.
func TestDrainAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := queuetest.New(orders, queuetest.Options{}).Queue()
		send(t, q, "a", "b")
		errs := map[int64]error{1: errors.New("again"), 2: processor.Snooze(20 * time.Second), 3: processor.Retry(errors.New("again"), 0)}
		got := processortest.DrainAll(t, q, nothing(errs), quiet)
		require.Equal(t, map[processor.Outcome]int64{processor.Done: 2, processor.Retried: 2, processor.Snoozed: 1}, got)
		queuetest.RequireEmpty(t, q)

		send(t, q, "c")
		text := failed(func(t processortest.TB) {
			processortest.DrainAll(t, q, nothing(map[int64]error{1: processor.Snooze(time.Hour)}), quiet)
		})
		require.Contains(t, text, "not done within 1m0s")
		require.Contains(t, text, "snoozed:1")
	})
}

func TestInMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { workAndDrain(t, queuetest.New(orders, queuetest.Options{}).Queue()) })
}

func TestOnEmulator(t *testing.T) {
	t.Parallel()
	_, q := onEmulator(t)
	workAndDrain(t, q)
}

// Drain goes on with what handlers send.
func TestDrainFollowsAChain(t *testing.T) {
	t.Parallel()
	db, q := onEmulator(t)
	client := db.Client(t)
	send(t, q, "1")
	chain := processor.Tx(func(_ context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		id := m.Key[0].(string)
		if len(id) == 5 {
			return nil
		}
		next, err := q.SendMutation(queue.Outgoing{Key: spanner.Key{id + "1"}})
		if err != nil {
			return err
		}
		return tx.BufferWrite([]*spanner.Mutation{next, spanner.Insert("Effects", []string{"Id", "N"}, []any{id, 1})})
	})
	require.Equal(t, map[processor.Outcome]int64{processor.Done: 5}, processortest.Drain(t, q, chain, quiet))
	queuetest.RequireEmpty(t, q)
	row, err := client.Single().Query(t.Context(), spanner.NewStatement("SELECT COUNT(*) FROM Effects")).Next()
	require.NoError(t, err)
	var n int64
	require.NoError(t, row.Columns(&n))
	require.EqualValues(t, 4, n)
}

// A processor that cannot run, because its tables are missing, fails the test at once.
func TestMissingTables(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, orders.DDL())
	q, err := queue.New(db.Client(t), orders)
	require.NoError(t, err)
	send(t, q, "a")
	require.Contains(t, failed(func(t processortest.TB) { processortest.Drain(t, q, nothing(nil), quiet) }), "is missing")
}

func addOne(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
	var n int64
	row, err := tx.ReadRow(ctx, "Effects", m.Key, []string{"N"})
	switch {
	case err == nil:
		if err := row.Columns(&n); err != nil {
			return err
		}
	case !errors.Is(err, spanner.ErrRowNotFound):
		return err
	}
	return tx.BufferWrite([]*spanner.Mutation{spanner.InsertOrUpdate("Effects", []string{"Id", "N"}, []any{m.Key[0], n + 1})})
}

// What is inside the transaction happens once, what is outside twice.
func TestTwice(t *testing.T) {
	t.Parallel()
	db, q := onEmulator(t)
	send(t, q, "a")
	var mails atomic.Int64
	processortest.Twice(t, db, q, processor.Tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		mails.Add(1)
		return addOne(ctx, tx, m)
	}), quiet)
	require.EqualValues(t, 2, mails.Load())
	row, err := db.Client(t).Single().ReadRow(t.Context(), "Effects", spanner.Key{"a"}, []string{"N"})
	require.NoError(t, err)
	var n int64
	require.NoError(t, row.Columns(&n))
	require.EqualValues(t, 1, n)
	queuetest.RequireEmpty(t, q)
}

func TestTwiceFails(t *testing.T) {
	t.Parallel()
	db, q := onEmulator(t)
	send(t, q, "a", "b")
	require.Contains(t, failed(func(t processortest.TB) {
		processortest.Twice(t, db, q, nothing(map[int64]error{1: errors.New("no")}), quiet)
	}), "should succeed")
	other := emulatortest.Database(t, orders.DDL())
	text := failed(func(t processortest.TB) { processortest.Twice(t, other, q, nothing(nil), quiet) })
	require.True(t, strings.Contains(text, "is it a queue of "+other.Name), text)
}
