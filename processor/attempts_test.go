package processor_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
)

// attemptsSeen collects the attempt numbers that a handler is shown.
type attemptsSeen struct {
	mu  sync.Mutex
	all []int
}

func (a *attemptsSeen) add(m *queue.Message) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, m.Attempt)
	return len(a.all)
}

func (a *attemptsSeen) list() []int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]int(nil), a.all...)
}

// F18 (a): deferrals are not attempts, and errors are.
func TestF18DeferralsAreNotAttempts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var seen attemptsSeen
	r := w.work(func(_ context.Context, _ *spanner.ReadWriteTransaction, m *queue.Message) error {
		if seen.add(m) <= 5 {
			return fmt.Errorf("later: %w", processor.Snooze(time.Millisecond))
		}
		return errors.New("no luck")
	}, maxAttempts(2))
	w.send("m1")
	r.outcome(processor.DeadLettered, 1)
	require.NoError(t, r.stop())
	require.Equal(t, []int{1, 1, 1, 1, 1, 1, 2}, seen.list())
	require.EqualValues(t, 5, r.Figures().Deliveries[processor.Snoozed])
	require.EqualValues(t, 1, r.Figures().Deliveries[processor.Retried])
	letters := w.letters("m1")
	require.Len(t, letters, 1)
	require.Equal(t, "payload of m1", string(letters[0].Payload))
	require.Equal(t, "attempts", letters[0].Reason)
	require.Equal(t, "no luck", letters[0].Error.StringVal)
	require.EqualValues(t, 2, letters[0].Attempts)
	require.Equal(t, "Q", letters[0].Handler.StringVal)
	require.Zero(t, w.left("m1"))
	require.Zero(t, w.effects("m1"))
	require.Zero(t, w.records(), "the record goes with the message")
}

// F18 (c): aborts by the server are not attempts.
func TestF18AbortsAreNotAttempts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.fault(fault.Rule{Method: "Commit", Tag: "queue=Q", Nth: 1, Times: 4, Do: fault.Abort()})
	var seen attemptsSeen
	r := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		seen.add(m)
		return addOne(ctx, tx, m)
	}, maxAttempts(1))
	w.send("m1")
	r.outcome(processor.Done, 1)
	require.NoError(t, r.stop())
	require.Equal(t, []int{1, 1, 1, 1, 1}, seen.list())
	require.Equal(t, 4, h.Applied())
	require.EqualValues(t, 4, r.Figures().Aborts)
	w.once("m1")
}

// The record of one message is not inherited by another of the same key.
func TestRecordsAreNotInherited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var seen attemptsSeen
	r := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		if seen.add(m) == 1 {
			return processor.Retry(errors.New("no"), time.Hour)
		}
		return addOne(ctx, tx, m)
	})
	w.send("m1")
	r.outcome(processor.Retried, 1)
	require.EqualValues(t, 1, w.records())
	_, err := w.queue.Purge(t.Context())
	require.NoError(t, err)
	w.send("m1")
	r.outcome(processor.Done, 1)
	require.NoError(t, r.stop())
	require.Equal(t, []int{1, 1}, seen.list())
}

// Attempts are counted across processors that know nothing of each other.
func TestAttemptsSurviveTheProcessor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var seen attemptsSeen
	w.send("m1")
	for range 2 {
		r := w.work(func(_ context.Context, _ *spanner.ReadWriteTransaction, m *queue.Message) error {
			seen.add(m)
			return processor.Retry(errors.New("no"), time.Second) // longer than this processor lives
		}, maxAttempts(3))
		r.outcome(processor.Retried, 1)
		require.NoError(t, r.stop())
	}
	last := w.work(func(_ context.Context, _ *spanner.ReadWriteTransaction, m *queue.Message) error {
		seen.add(m)
		return errors.New("no")
	}, maxAttempts(3))
	last.outcome(processor.DeadLettered, 1)
	require.NoError(t, last.stop())
	require.Equal(t, []int{1, 2, 3}, seen.list())
	require.Len(t, w.letters("m1"), 1)
}
