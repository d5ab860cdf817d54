package table_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/lease"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/schema"
)

// F18: deferrals are counted apart, failures end in the dead letters, and a redriven message begins anew.
func TestF18AttemptsOnATable(t *testing.T) {
	t.Parallel()
	s := newShop(t, definition())
	var mu sync.Mutex
	var attempts []int
	redriven := false
	p, _ := s.work(processor.Tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		mu.Lock()
		attempts = append(attempts, m.Attempt)
		n, again := len(attempts), redriven
		mu.Unlock()
		switch {
		case again:
			return addOne(ctx, tx, m)
		case n <= 5:
			return processor.Snooze(0)
		}
		return errors.New("it fails")
	}), processor.Config{Concurrency: 2, MaxAttempts: 2})
	s.send("m1")
	eventually(t, "the dead letter", func() bool { return p.Figures().Deliveries[processor.DeadLettered] >= 1 })
	require.EqualValues(t, 5, p.Figures().Deliveries[processor.Snoozed])
	mu.Lock()
	require.Equal(t, []int{1, 1, 1, 1, 1, 1, 2}, attempts)
	redriven = true
	mu.Unlock()

	letters, err := s.queue.DeadLetters().List(t.Context(), queue.DeadLetterFilter{}, nil, 10)
	require.NoError(t, err)
	require.Len(t, letters, 1)
	require.Equal(t, 2, letters[0].Attempts)
	require.False(t, letters[0].FirstAt.IsZero())
	require.True(t, letters[0].FirstAt.Before(letters[0].LastAt))
	require.NoError(t, s.queue.DeadLetters().Redrive(t.Context(), letters[0].Key, letters[0].DeadAt))
	eventually(t, "the redriven message", func() bool { return p.Figures().Deliveries[processor.Done] >= 1 })
	s.once("m1")
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, 1, attempts[len(attempts)-1], "it begins anew")
}

// A message whose handlers never report an outcome, as when it kills its process, is given up by its row's own count.
func TestStartsWithoutOutcome(t *testing.T) {
	t.Parallel()
	s := newShop(t, definition(), queue.LeaseLength(100*time.Millisecond))
	s.send("killer")
	for range 3 { // three claims that end with the process
		for m, err := range s.queue.Receive(t.Context(), queue.ReceiveOptions{MaxDuration: patience}) {
			require.NoError(t, err)
			require.NotZero(t, m.Attempt)
			break
		}
	}
	p, stop := s.work(processor.Tx(func(context.Context, *spanner.ReadWriteTransaction, *queue.Message) error {
		t.Error("the handler was started once more")
		return nil
	}), processor.Config{MaxAttempts: 2})
	eventually(t, "the dead letter", func() bool { return p.Figures().Deliveries[processor.DeadLettered] >= 1 })
	stop()
	letters, err := s.queue.DeadLetters().List(t.Context(), queue.DeadLetterFilter{}, nil, 10)
	require.NoError(t, err)
	require.Len(t, letters, 1)
	require.Equal(t, 3, letters[0].Attempts)
}

// A deferral sends the message again under another due time; the holder acknowledges it without a token.
func TestDeferOnATable(t *testing.T) {
	t.Parallel()
	s := newShop(t, schema.QueueTable{Queue: definition().Queue, Priorities: 4}, queue.LeaseLength(time.Second))
	require.NoError(t, s.queue.Send(t.Context(), []queue.Outgoing{{Key: spanner.Key{"m1"}, Payload: []byte("one"), Priority: 3}}))
	r, err := lease.NewReceiver(s.queue, lease.Config{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	held, err := r.Next(t.Context())
	require.NoError(t, err)
	require.NoError(t, held.Confirm(t.Context()), "a renewal succeeds, by the token that it came with")
	require.NoError(t, held.Checkpoint(t.Context(), []byte("two"), 1500*time.Millisecond))
	first := held.Message()
	held.Release()

	again, err := r.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, "two", string(again.Message().Payload))
	require.Equal(t, 2, again.Message().Attempt, "the start goes on")
	require.Equal(t, 3, again.Message().Delivery().Priority)
	_, err = s.client.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		return s.queue.Ack(ctx, tx, first)
	})
	require.ErrorIs(t, err, queue.ErrNotHeld, "its time was over, and another has it")
	_, err = s.client.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		return s.queue.Resend(ctx, tx, again.Message(), again.Message().DeliverTime.Add(time.Hour), nil)
	})
	require.NoError(t, err)
	again.Release()
	cancel()
	require.NoError(t, <-ended)
	peeked, err := s.queue.Peek(t.Context(), 5)
	require.NoError(t, err)
	require.Len(t, peeked, 1)
	require.Equal(t, 3, peeked[0].Delivery().Priority, "a resend keeps the priority")
}

// F13 and the stop: what has begun is finished, what has not comes back.
func TestStopOnATable(t *testing.T) {
	t.Parallel()
	s := newShop(t, definition(), queue.LeaseLength(time.Second))
	started, finish := make(chan struct{}), make(chan struct{})
	var once sync.Once
	_, stop := s.work(processor.Tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		once.Do(func() { close(started) })
		<-finish
		return addOne(ctx, tx, m)
	}), processor.Config{Concurrency: 1})
	s.send("m1", "m2", "m3")
	<-started
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop()
	}()
	close(finish)
	<-stopped
	stats, err := s.queue.Stats(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, stats.Ready, "the one that had begun was committed")
	p, stop := s.work(processor.Tx(addOne), processor.Config{})
	eventually(t, "the others", func() bool { return p.Figures().Deliveries[processor.Done] >= 2 })
	stop()
	s.once("m1", "m2", "m3")
}
