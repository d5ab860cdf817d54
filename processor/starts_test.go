package processor_test

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/lease"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// sendStarted sends a message on whose record there are starts of processes that were killed.
func (w *world) sendStarted(id string, starts int64) {
	w.t.Helper()
	_, err := w.client.Apply(w.t.Context(), []*spanner.Mutation{spanner.Insert("QAttempts",
		[]string{"Id", "DeliverTime", "Starts", "Errors", "Deferrals", "FirstAt", "LastAt"},
		[]any{id, w.sendMarked(id), starts, 0, 0, spanner.CommitTimestamp, spanner.CommitTimestamp})})
	require.NoError(w.t, err)
}

// sendMarked sends messages as if they had been sent again, so that their starts are counted, and returns their due time.
// They are due soon; on a machine that is slow not quite so soon, since a time that is past is not kept.
func (w *world) sendMarked(ids ...string) time.Time {
	w.t.Helper()
	for in := leaseLength; ; in *= 2 {
		due := time.Now().Add(in).Truncate(time.Microsecond).Add(7).UTC()
		var out []queue.Outgoing
		var acks []*spanner.Mutation
		for _, id := range ids {
			out = append(out, queue.Outgoing{Key: spanner.Key{id}, Payload: []byte("payload of " + id), DeliverTime: due})
			acks = append(acks, spanner.Ack("Q", spanner.Key{id}))
		}
		require.NoError(w.t, w.queue.Send(w.t.Context(), out))
		row, err := w.client.Single().ReadRow(w.t.Context(), "Q", spanner.Key{ids[0]}, []string{"DeliverTime"})
		require.NoError(w.t, err)
		var kept time.Time
		require.NoError(w.t, row.Columns(&kept))
		if kept.Equal(due) {
			return due
		}
		_, err = w.client.Apply(w.t.Context(), acks)
		require.NoError(w.t, err)
	}
}

// A message that was started MaxAttempts + 1 times without an outcome is not started again.
func TestStartsWithoutAnOutcome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sendStarted("once more", 3)
	w.sendStarted("never again", 4)
	var seen attemptsSeen
	r := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		seen.add(m)
		return addOne(ctx, tx, m)
	}, maxAttempts(3))
	r.outcome(processor.DeadLettered, 1)
	r.outcome(processor.Done, 1)
	require.NoError(t, r.stop())
	w.once("once more")
	require.Equal(t, []int{4}, seen.list())
	require.Zero(t, w.effects("never again"))
	letters := w.letters("never again")
	require.Len(t, letters, 1)
	require.Equal(t, "payload of never again", string(letters[0].Payload))
	require.Equal(t, "no outcome", letters[0].Reason)
	require.EqualValues(t, 4, letters[0].Attempts)
	require.Zero(t, w.records())
}

// The record of a message goes in the commit that takes the message out, whatever the handler's kind.
func TestRecordsGoWithTheirMessages(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]processor.Handler{
		"tx":    processor.Tx(addOne),
		"batch": processor.Batch(addAll),
		"call": processor.Call[int]{
			Call: func(context.Context, *lease.Held) (int, error) { return 0, nil },
			Settle: func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message, _ int) error {
				return addOne(ctx, tx, m)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.sendStarted("m1", 1)
			w.sendStarted("m2", 1)
			require.EqualValues(t, 2, w.records())
			r := w.handle(w.queue, h)
			r.outcome(processor.Done, 2)
			require.NoError(t, r.stop())
			w.once("m1", "m2")
			require.Zero(t, w.records())
		})
	}
}

// A start that was never written is not taken back from the process that was killed before.
func TestLostStartTakesNothingBack(t *testing.T) {
	t.Parallel()
	for name, action := range map[string]fault.Action{
		"landed":       fault.After(codes.Unknown, "who knows"),
		"did not land": fault.Before(codes.Unknown, "who knows"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.sendStarted("m1", 1)
			h := w.fault(fault.Rule{Method: "Commit", Tag: "attempts=Q", Nth: 1, Do: action})
			var seen attemptsSeen
			r := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
				seen.add(m)
				return addOne(ctx, tx, m)
			})
			r.outcome(processor.Done, 1)
			require.NoError(t, r.stop())
			require.Equal(t, 1, h.Applied())
			require.EqualValues(t, 1, r.Figures().Deliveries[processor.Interrupted], "the handler is not started on a start that may not be on record")
			require.Equal(t, []int{2}, seen.list())
			w.once("m1")
		})
	}
}

// Starts that are to be taken back in a database that does not answer hold a worker up once, not once a message.
func TestTakingBackIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 30
	w.sendMarked(ids(n)...)
	w.fault(fault.Rule{Method: "Commit", Tag: "handler=Q", Do: fault.Abort()})
	takeBack := w.fault(fault.Rule{Method: "Commit", Tag: "attempts=Q", Nth: 2, Times: 1000, Do: fault.Drop()})
	r := w.handle(w.queue, processor.Batch(func(context.Context, *spanner.ReadWriteTransaction, []*queue.Message) error { return nil }),
		func(c *processor.Config) { c.Concurrency, c.Linger, c.MaxRuns = 1, 500*time.Millisecond, 1 })
	w.applied(takeBack)
	begun := time.Now()
	wait(t, "the outcomes", func() bool { return r.Figures().Deliveries[processor.Interrupted] >= n })
	require.Less(t, time.Since(begun), n*leaseLength/2)
}
