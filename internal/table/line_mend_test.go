package table

import (
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/stretchr/testify/require"
)

// A lease that ends: the message is first in its line for as long as it is there.
func TestLineWaitsForTheMessageWhoseLeaseEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ordered())
	q := w.bare(Options{LeaseLength: soon})
	w.sendNumbered(q, "a", 1, 2)
	late := w.takeAll(q)
	var again []backend.Delivery
	wait(t, "the lease to end", func() bool { again = w.takeAll(q); return len(again) > 0 })
	require.Equal(t, []string{"a1"}, names(again))
	require.ErrorIs(t, ack(t.Context(), q, late[0]), backend.ErrNotHeld)
	require.NoError(t, ack(t.Context(), q, again[0]))
	require.Equal(t, []string{"a2"}, names(w.takeAll(q)))
}

// A first message that is deleted by hand brings nobody back; the next message of its key does.
func TestLineThatWasCutIsMended(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ordered())
	q := w.bare(Options{LeaseLength: long})
	w.sendNumbered(q, "a", 1, 2, 3)
	require.Equal(t, []string{"a1"}, names(w.takeAll(q)))
	_, err := q.client.Apply(t.Context(), []*spanner.Mutation{spanner.Delete("T", spanner.Key{"a", int64(1)})})
	require.NoError(t, err)
	require.Empty(t, w.takeAll(q))
	w.sendNumbered(q, "a", 4)
	got := w.takeAll(q)
	require.Equal(t, []string{"a2"}, names(got))

	// Without one, they come back by themselves.
	r, err := q.client.Single().ReadRow(t.Context(), "T", spanner.Key{"a", int64(3)}, q.columns.all)
	require.NoError(t, err)
	read, err := q.readRow(r)
	require.NoError(t, err)
	now, err := q.ServerTime(t.Context())
	require.NoError(t, err)
	require.WithinRange(t, read.visible, now.Add(parkFor-time.Minute), now.Add(parkFor+time.Minute))
}

// A long line holds up nobody else, and costs each of its messages one write while it waits.
func TestLongLineHoldsUpNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ordered())
	count := newRPCs()
	q := w.open(w.db.Bare(t, count.options()...), Options{LeaseLength: long})
	now, err := q.ServerTime(t.Context())
	require.NoError(t, err)
	var line []*spanner.Mutation // as a stranger sends them: all in sight
	for i := range 600 {
		line = append(line, spanner.InsertMap("T", map[string]any{
			"Account": "long", "Id": i, "Payload": []byte("x"), "SentAt": spanner.CommitTimestamp,
			"DueTime": now.Add(time.Duration(i)*time.Millisecond - time.Hour), "VisibleAt": now.Add(time.Duration(i)*time.Millisecond - time.Hour),
		}))
	}
	_, err = q.client.Apply(t.Context(), line)
	require.NoError(t, err)
	for i := range 5 {
		w.sendNumbered(q, fmt.Sprint("short", i, "-"), 1)
	}
	count.reset()
	got := w.takeAll(q)
	require.Len(t, got, 6)
	require.Equal(t, "long0", names(got)[0])
	t.Logf("600 messages of one key before 5 others: %v", count)
	require.LessOrEqual(t, count.calls("Commit"), 8, "up to %d are parked at a time: %v", maxParked, count)
	count.reset()
	require.NoError(t, ack(t.Context(), q, got[0]))
	require.Equal(t, []string{"long1"}, names(w.takeAll(q)))
	require.LessOrEqual(t, count.total(), 3+5, "acknowledge: read, next, commit; claim: look, read, line, commit, look: %v", count)
}
