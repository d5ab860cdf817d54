package table

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

func newDatabase(t *testing.T, ddl ...string) *emulatortest.DB {
	t.Helper()
	return emulatortest.Database(t, ddl...)
}

func updateOnce(stmt spanner.Statement) func(context.Context, *spanner.ReadWriteTransaction) error {
	return func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		_, err := tx.Update(ctx, stmt)
		return err
	}
}

// Now is the database's: between the time before the send and the time after it, whichever way the message goes.
func TestNowIsTheDatabases(t *testing.T) {
	t.Parallel()
	s := plain()
	s.Shards, s.Priorities = 4, 2
	w := newWorld(t, s)
	q := w.bare(Options{LeaseLength: long})
	clock := w.bare(Options{})
	before, err := clock.ServerTime(t.Context())
	require.NoError(t, err)
	send := func(id string) {
		t.Helper()
		m := message(id)
		m.Priority = 1
		mutation, err := q.SendMutation(m)
		require.NoError(t, err)
		_, err = q.client.Apply(t.Context(), []*spanner.Mutation{mutation})
		require.NoError(t, err)
	}
	send("mutation")
	w.send(q, "unknown time")
	w.send(q, "known time")
	stmt, err := q.SendStatement(message("statement"))
	require.NoError(t, err)
	_, err = q.client.ReadWriteTransaction(t.Context(), updateOnce(stmt))
	require.NoError(t, err)
	after, err := w.bare(Options{}).ServerTime(t.Context())
	require.NoError(t, err)
	for _, id := range []string{"mutation", "unknown time", "known time", "statement"} {
		r, there := w.find(q, id)
		require.True(t, there, id)
		require.WithinRange(t, r.due, before.Add(-5*time.Second), after, id)
		require.WithinRange(t, r.visible, before.Add(-5*time.Second), after, id)
		require.Zero(t, r.attempts)
		require.Empty(t, r.claim)
		require.Equal(t, id == "mutation", r.priority == 1)
	}
	require.Len(t, w.takeNow(q), 4, "and it is now")
}

func TestSendIsAllOrNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	q := w.bare(Options{LeaseLength: long})
	w.send(q, "b")
	err := q.Send(t.Context(), []backend.Outgoing{message("a"), message("b"), message("c")})
	require.Equal(t, codes.AlreadyExists, spanner.ErrCode(err))
	require.Equal(t, []string{"b"}, keys(w.takeNow(q)))
}

func TestSendOrIgnoreReturnsWhatIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	q := w.bare(Options{LeaseLength: long})
	w.send(q, "b")
	other := message("b")
	other.Payload = []byte("another")
	taken, err := q.SendOrIgnore(t.Context(), []backend.Outgoing{message("a"), other, message("a"), message("c")})
	require.NoError(t, err)
	require.Len(t, taken, 2)
	require.Equal(t, "payload of b", string(taken[1].Payload))
	require.Equal(t, "payload of a", string(taken[2].Payload), "a key that is given twice meets itself")
	require.Equal(t, []string{"a", "b", "c"}, sortedKeys(w.takeNow(q)))
}

func TestStatsPeekPurge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	q := w.bare(Options{LeaseLength: long})
	w.sendAt(q, 0, 30, 10, -1000)
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, stats.Ready)
	require.EqualValues(t, 1, stats.Delayed)
	require.InDelta(t, 30, stats.OldestAge.Seconds(), 5)

	held := w.take(q, 1)[0]
	require.Equal(t, "p0 30", held.Key[0])
	peeked, err := q.Peek(t.Context(), 2)
	require.NoError(t, err)
	require.Equal(t, []string{"p0 30", "p0 10"}, keys(peeked), "by due time, leased or not")
	require.Equal(t, "payload of p0 10", string(peeked[1].Payload))
	require.True(t, peeked[0].LeaseEnd.IsZero())
	require.NoError(t, ack(t.Context(), q, peeked[1]), "who looks may take out what nobody holds")
	require.NoError(t, ack(t.Context(), q, peeked[0]), "and compete with a holder")
	require.ErrorIs(t, ack(t.Context(), q, held), backend.ErrNotHeld)

	w.send(q, ids(5)...)
	w.take(q, 2)
	n, err := q.Purge(t.Context(), 4)
	require.NoError(t, err)
	require.Equal(t, 4, n)
	n, err = q.Purge(t.Context(), 4)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	stats, err = q.Stats(t.Context())
	require.NoError(t, err)
	require.Zero(t, stats)
}

// A peeked message that somebody claims since is not the one that was seen.
func TestPeekedMessageThatIsClaimed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	q := w.bare(Options{LeaseLength: long})
	w.send(q, "m1")
	peeked, err := q.Peek(t.Context(), 1)
	require.NoError(t, err)
	held := w.take(q, 1)[0]
	require.ErrorIs(t, ack(t.Context(), q, peeked[0]), backend.ErrNotHeld)
	require.NoError(t, ack(t.Context(), q, held))
}

func TestOptionsAreRefusedByName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		options Options
		says    string
	}{
		{Options{LeaseLength: time.Millisecond}, "LeaseLength is 1ms, it must be from 100ms to 12h"},
		{Options{LeaseLength: 24 * time.Hour}, "LeaseLength"},
		{Options{PollInterval: time.Millisecond}, "PollInterval is 1ms, it must be from 10ms to 1h"},
		{Options{PollInterval: 2 * time.Hour}, "PollInterval"},
	} {
		_, err := New(nil, plain(), c.options)
		require.ErrorContains(t, err, c.says)
	}
	_, err := New(nil, schema.QueueTable{}, Options{})
	require.Error(t, err)
	float := plain()
	float.Queue.KeyColumns = []schema.Column{{Name: "Score", Type: schema.Float64()}}
	_, err = New(nil, float, Options{})
	require.ErrorContains(t, err, "Score")

	q := newWorld(t, plain()).bare(Options{})
	require.Equal(t, defaultLease, q.LeaseLength())
	for _, c := range []struct {
		message backend.Outgoing
		says    string
	}{
		{backend.Outgoing{Key: spanner.Key{1}}, "Id"},
		{backend.Outgoing{Key: spanner.Key{"a"}, DeliverTime: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, "years 1 to 9999"},
	} {
		_, err := q.Check(c.message)
		require.ErrorContains(t, err, c.says)
	}
}
