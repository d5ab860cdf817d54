package queuesql_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	spannerdriver "github.com/googleapis/go-sql-spanner"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuesql"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// stale is a message as somebody saw it who holds it no more.
func stale(m *queue.Message) *queue.Message {
	old := *m
	old.DeliverTime = m.DeliverTime.Add(-time.Second)
	return &old
}

func begin(t *testing.T, db *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// A miss, first or after other writes, with and without the driver's replay: the transaction is over.
func TestMiss(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("m1")
	m := w.receive()
	for name, db := range map[string]*sql.DB{
		"replay":        w.db,
		"no replay":     w.open(map[string]string{"retry_aborts_internally": "false"}),
		"explicit":      w.open(map[string]string{"begin_transaction_option": "ExplicitBeginTransaction"}),
		"batching":      w.open(map[string]string{"auto_batch_dml": "true"}),
		"transactional": w.open(map[string]string{"connection_state_type": "TRANSACTIONAL"}),
	} {
		tx := begin(t, db)
		err := queuesql.Ack(t.Context(), tx, w.queue, stale(m))
		require.ErrorIs(t, err, queue.ErrNotHeld, name)
		require.Equal(t, codes.OutOfRange, spanner.ErrCode(err), name)
		require.ErrorIs(t, effect(t.Context(), tx, "first"), sql.ErrTxDone, name)
		require.ErrorIs(t, tx.Commit(), sql.ErrTxDone, name)

		tx = begin(t, db)
		require.NoError(t, effect(t.Context(), tx, "after"), name)
		err = queuesql.Ack(t.Context(), tx, w.queue, stale(m))
		require.Error(t, err, name)
		require.ErrorIs(t, tx.Commit(), sql.ErrTxDone, name)
	}
	require.Zero(t, w.effects("first"))
	require.Zero(t, w.effects("after"))
	require.EqualValues(t, 1, w.left("m1"))
}

// The driver's own loop, with a function that swallows the miss.
func TestMissIsSwallowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("m1")
	m := w.receive()
	err := spannerdriver.RunTransaction(t.Context(), w.db, nil, func(ctx context.Context, tx *sql.Tx) error {
		if err := effect(ctx, tx, "m1"); err != nil {
			return err
		}
		_ = queuesql.Ack(ctx, tx, w.queue, stale(m))
		return nil
	})
	require.ErrorIs(t, err, sql.ErrTxDone)
	require.Zero(t, w.effects("m1"))
	require.NoError(t, spannerdriver.RunTransaction(t.Context(), w.db, nil, func(ctx context.Context, tx *sql.Tx) error {
		if err := queuesql.Ack(ctx, tx, w.queue, m); err != nil {
			return err
		}
		return effect(ctx, tx, "m1")
	}))
	w.once("m1")
}

// An acknowledgement that would only be collected into a batch is refused: its answer would be made up.
func TestAckInBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("m1")
	m := w.receive()
	automatic := w.open(map[string]string{"auto_batch_dml": "true", "auto_batch_dml_update_count": "1"})
	for name, open := range map[string]func() *sql.Tx{
		"automatic": func() *sql.Tx { return begin(t, automatic) },
		"by hand": func() *sql.Tx {
			tx := begin(t, w.db)
			_, err := tx.ExecContext(t.Context(), "START BATCH DML")
			require.NoError(t, err)
			return tx
		},
	} {
		tx := open()
		_, err := tx.ExecContext(t.Context(), "INSERT INTO Effects (Id, N) VALUES ('m1', 1)")
		require.NoError(t, err, name)
		require.ErrorIs(t, queuesql.Ack(t.Context(), tx, w.queue, m), queuesql.ErrBatch, name)
		require.ErrorIs(t, tx.Commit(), sql.ErrTxDone, name)
	}
	require.Zero(t, w.effects("m1"))
	require.EqualValues(t, 1, w.left("m1"))

	tx := begin(t, automatic)
	require.NoError(t, queuesql.Ack(t.Context(), tx, w.queue, m), "the first statement is executed, there is no batch yet")
	_, err := tx.ExecContext(t.Context(), "INSERT INTO Effects (Id, N) VALUES ('m1', 1)")
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	w.once("m1")
}

// The driver replays the statements of an aborted transaction. The replayed acknowledgement is guarded as the first was.
func TestReplay(t *testing.T) {
	t.Parallel()
	commit := func(w *world, m *queue.Message, do fault.Action) error {
		h := w.fault(fault.Rule{Method: "Commit", Nth: 1, Do: do})
		tx := begin(t, w.db)
		require.NoError(t, queuesql.Ack(t.Context(), tx, w.queue, m))
		require.NoError(t, effect(t.Context(), tx, "m1"))
		err := tx.Commit()
		w.applied(h)
		return err
	}
	t.Run("hit", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.send("m1")
		require.NoError(t, commit(w, w.receive(), fault.Abort()), "the same answers again: the driver commits")
		w.once("m1")
	})
	t.Run("miss", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.send("m1")
		m := w.receive()
		// The worst that a server could say: it aborts what has landed.
		err := commit(w, m, fault.After(codes.Aborted, "or so it says"))
		require.ErrorIs(t, err, spannerdriver.ErrAbortedDueToConcurrentModification)
		w.once("m1")
		// Whoever runs the whole again learns it from the acknowledgement.
		require.ErrorIs(t, queuesql.Ack(t.Context(), begin(t, w.db), w.queue, m), queue.ErrNotHeld)
	})
	t.Run("in the middle", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.send("m1")
		m := w.receive()
		tx := begin(t, w.db)
		require.NoError(t, effect(t.Context(), tx, "m1"))
		// The acknowledgement is aborted, and the replay of what went before finds something else: the error is swallowed.
		h := w.fault(fault.Rule{Method: "ExecuteStreamingSql", SQL: "DELETE", Nth: 1, Do: fault.Abort()})
		other := w.fault(fault.Rule{Method: "ExecuteStreamingSql", SQL: "SELECT N", Nth: 1, Do: fault.Before(codes.FailedPrecondition, "not now")})
		err := queuesql.Ack(t.Context(), tx, w.queue, m)
		w.applied(h)
		w.applied(other)
		require.ErrorIs(t, err, spannerdriver.ErrAbortedDueToConcurrentModification)
		require.ErrorIs(t, tx.Commit(), sql.ErrTxDone, "half a replay must not commit")
		require.Zero(t, w.effects("m1"))
		require.EqualValues(t, 1, w.left("m1"))
	})
}

// The replay finds that somebody has changed what the transaction read, and the caller overlooks the error of the statement
// that was under way. In a bare transaction the driver then commits a part: here the acknowledgement, and not the work. That
// is why the package comment wants RunTransaction, whose transactions are not replayed.
func TestReplayThatFailsHalfWay(t *testing.T) {
	t.Parallel()
	work := func(ctx context.Context, w *world, tx *sql.Tx, m *queue.Message, disturb bool) error {
		if err := queuesql.Ack(ctx, tx, w.queue, m); err != nil {
			return err
		}
		if err := effect(ctx, tx, "m1"); err != nil {
			return err
		}
		if disturb { // the other one waits until the idle bound is over, and our transaction is aborted
			_, err := w.queue.Backend().Client().Apply(ctx, []*spanner.Mutation{spanner.InsertOrUpdate("Effects", []string{"Id", "N"}, []any{"m1", 100})})
			require.NoError(w.t, err)
		}
		var n int64
		err := tx.QueryRowContext(ctx, "SELECT 7").Scan(&n)
		require.Equal(w.t, disturb, spanner.ErrCode(err) == codes.Aborted, "%v", err)
		return nil // it seemed to be no matter
	}
	t.Run("bare", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.send("m1")
		tx := begin(t, w.db)
		require.NoError(t, work(t.Context(), w, tx, w.receive(), true))
		require.NoError(t, tx.Commit())
		require.EqualValues(t, 100, w.effects("m1"), "if the work is there, the warning in the package comment can go")
		require.Zero(t, w.left("m1"))
	})
	t.Run("RunTransaction", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.send("m1")
		m := w.receive()
		runs := 0
		require.NoError(t, spannerdriver.RunTransaction(t.Context(), w.db, nil, func(ctx context.Context, tx *sql.Tx) error {
			runs++
			return work(ctx, w, tx, m, runs == 1)
		}))
		require.Equal(t, 2, runs)
		require.EqualValues(t, 101, w.effects("m1"))
		require.Zero(t, w.left("m1"))
	})
}

// Without replay an aborted acknowledgement leaves the transaction to whoever runs it again; it cannot commit.
func TestAbortedAck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("m1")
	m := w.receive()
	db := w.open(map[string]string{"retry_aborts_internally": "false"})
	h := w.fault(fault.Rule{Method: "ExecuteStreamingSql", SQL: "DELETE", Nth: 1, Do: fault.Abort()})
	tx := begin(t, db)
	require.NoError(t, effect(t.Context(), tx, "m1"))
	err := queuesql.Ack(t.Context(), tx, w.queue, m)
	w.applied(h)
	require.Equal(t, codes.Aborted, spanner.ErrCode(err))
	require.Error(t, tx.Commit())
	require.Zero(t, w.effects("m1"))
	require.EqualValues(t, 1, w.left("m1"))
}

// A statement of an acknowledgement whose answer is lost is sent again by the client, and counts once.
func TestAckAnswerLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("m1")
	m := w.receive()
	h := w.fault(fault.Rule{Method: "ExecuteStreamingSql", SQL: "DELETE", Nth: 1, Do: fault.After(codes.Unavailable, "try again")})
	err := spannerdriver.RunTransaction(t.Context(), w.db, nil, func(ctx context.Context, tx *sql.Tx) error {
		if err := effect(ctx, tx, "m1"); err != nil {
			return err
		}
		return queuesql.Ack(ctx, tx, w.queue, m)
	})
	w.applied(h)
	require.NoError(t, err, "the database knows the statement again by its number")
	w.once("m1")
}
