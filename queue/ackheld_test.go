package queue_test

import (
	"testing"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
)

// held begins a transaction that is held by hand.
func (w *world) held() *spanner.ReadWriteStmtBasedTransaction {
	w.t.Helper()
	tx, err := spanner.NewReadWriteStmtBasedTransaction(w.t.Context(), w.client)
	require.NoError(w.t, err)
	return tx
}

func TestHeldTransactionAcknowledges(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	m := w.one("m1")
	tx := w.held()
	require.NoError(t, w.queue.Ack(t.Context(), tx, m))
	_, err := tx.Update(t.Context(), statement("m1"))
	require.NoError(t, err)
	_, err = tx.Commit(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, w.effects("m1"))
	require.Zero(t, w.count())
}

// missed makes a held transaction whose ack misses, between two statements.
func (w *world) missed() *spanner.ReadWriteStmtBasedTransaction {
	w.t.Helper()
	t := w.t.(*testing.T)
	m := w.one("m1")
	require.NoError(t, w.ack(m))
	tx := w.held()
	_, err := tx.Update(t.Context(), statement("before"))
	require.NoError(t, err)
	requireNotHeld(t, w.queue.Ack(t.Context(), tx, m))
	_, err = tx.Update(t.Context(), statement("after"))
	require.NoError(t, err, "only the statement fails: the transaction stays open")
	return tx
}

func (w *world) keptNothing() {
	w.t.Helper()
	require.Zero(w.t, w.effects("before"))
	require.Zero(w.t, w.effects("after"))
}

func TestHeldTransactionRollsBackAfterAMiss(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	tx := w.missed()
	tx.Rollback(t.Context())
	w.keptNothing()
	// The rows are free at once.
	_, err := w.client.Apply(t.Context(), []*spanner.Mutation{spanner.Insert("Effects", []string{"Id", "N"}, []any{"before", 7})})
	require.NoError(t, err)
}

func TestHeldTransactionThatSwallowsAMissCannotCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	tx := w.missed()
	_, err := tx.Commit(t.Context())
	requirePoisoned(t, err)
	tx.Rollback(t.Context())
	w.keptNothing()
}

func TestHeldTransactionMissesWithItsFirstStatement(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	m := w.one("m1")
	require.NoError(t, w.ack(m))
	tx := w.held()
	requireNotHeld(t, w.queue.Ack(t.Context(), tx, m))
	_, err := tx.Commit(t.Context())
	requirePoisoned(t, err)
}

func TestHeldTransactionAcknowledgesSeveralAndResends(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	w.send("m1", "m2", "m3")
	ms := w.receive(3)
	require.NoError(t, w.ack(ms[1]))
	at := w.later()
	tx := w.held()
	missing, err := w.queue.AckAll(t.Context(), tx, ms[:2])
	require.NoError(t, err)
	require.Equal(t, []*queue.Message{ms[1]}, missing)
	require.NoError(t, w.queue.Resend(t.Context(), tx, ms[2], at, nil))
	_, err = tx.Commit(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, w.count())
	require.Equal(t, at.UTC(), w.stored(ms[2].Key).DeliverTime)
}
