package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
)

var errNo = errors.New("no")

// attempts notes the attempts that a handler is shown, without the runs again of an aborted transaction.
type attempts struct {
	mu   sync.Mutex
	seen []int
}

func (a *attempts) note(m *queue.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen = append(a.seen, m.Attempt)
}

func (a *attempts) list() []int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Compact(slices.Clone(a.seen))
}

func failuresAreCounted(h *house) {
	q := h.open()
	h.send(q, "bad", "good")
	var shown attempts
	w := h.work(h.tx(func(_ context.Context, m *queue.Message, effect func() error) error {
		if m.Key[0] == "good" {
			return effect()
		}
		shown.note(m)
		return errNo
	}))
	h.wait("the end", func() bool { return w.ended(processor.DeadLettered) == 1 && w.ended(processor.Done) == 1 })
	require.NoError(h.t, w.stop())
	require.Equal(h.t, []int{1, 2, 3}, shown.list())
	require.EqualValues(h.t, 2, w.ended(processor.Retried))
	require.Equal(h.t, 1, h.letters())
	require.Zero(h.t, h.effects("bad"))
	h.once(q, "good")
}

// Two messages die. One is redriven, and begins anew; the other is discarded.
func deadLetters(h *house) {
	q := h.open()
	ctx := h.t.Context()
	h.send(q, "m1", "m2")
	w := h.work(h.tx(func(context.Context, *queue.Message, func() error) error { return processor.DeadLetter(errNo) }))
	h.wait("both to die", func() bool { return w.ended(processor.DeadLettered) == 2 })
	require.NoError(h.t, w.stop())

	dead := q.DeadLetters()
	list := func(id string) *queue.DeadLetter {
		found, err := dead.List(ctx, queue.DeadLetterFilter{Key: outgoing(id).Key}, nil, 10)
		require.NoError(h.t, err)
		require.Len(h.t, found, 1)
		return found[0]
	}
	one, two := list("m1"), list("m2")
	require.Equal(h.t, errNo.Error(), one.Error)
	require.Equal(h.t, 1, one.Attempts)
	full, err := dead.Get(ctx, one.Key, one.DeadAt)
	require.NoError(h.t, err)
	require.Equal(h.t, "payload of m1", string(full.Payload))

	h.send(q, "m1")
	require.ErrorIs(h.t, dead.Redrive(ctx, one.Key, one.DeadAt), queue.ErrExists, "its key is in the queue")
	_, err = q.Purge(ctx)
	require.NoError(h.t, err)
	require.NoError(h.t, dead.Redrive(ctx, one.Key, one.DeadAt))
	require.ErrorIs(h.t, dead.Redrive(ctx, one.Key, one.DeadAt), queue.ErrNoDeadLetter)
	require.NoError(h.t, dead.Discard(ctx, two.Key, two.DeadAt))
	require.Zero(h.t, h.letters())

	var shown attempts
	w = h.work(h.tx(func(_ context.Context, m *queue.Message, effect func() error) error {
		shown.note(m)
		if string(m.Payload) != "payload of m1" {
			return processor.Discard(fmt.Errorf("its payload is %q", m.Payload))
		}
		return effect()
	}))
	h.wait("it to be done", func() bool { return w.ended(processor.Done) == 1 })
	require.NoError(h.t, w.stop())
	require.Equal(h.t, []int{1}, shown.list(), "it begins anew")
	h.once(q, "m1")
	require.Zero(h.t, h.effects("m2"))
}

// later makes a handler that asks three times for "again after the pause", and then has its effect.
func (h *house) later(pause time.Duration, shown *attempts) processor.Handler {
	return h.tx(func(_ context.Context, m *queue.Message, effect func() error) error {
		shown.note(m)
		if m.Attempt <= 3 {
			return processor.Retry(errNo, pause)
		}
		return effect()
	})
}

// F16: at every moment there is one message of the key, until its effect has been committed.
func (h *house) oneUntilDone(q *queue.Queue, id string) {
	h.t.Helper()
	h.wait("it to be done", func() bool {
		left := h.left(q)
		require.LessOrEqual(h.t, left, int64(1), "original and copy both live")
		return left == 0
	})
	require.EqualValues(h.t, 1, h.effects(id), "neither original nor copy lives, and nothing was done")
}

func laterThreeTimes(h *house) {
	q := h.open()
	h.send(q, "m1")
	var shown attempts
	const pause = 300 * time.Millisecond
	began := time.Now()
	w := h.work(h.later(pause, &shown), func(c *processor.Config) { c.MaxAttempts = 4 })
	h.oneUntilDone(q, "m1")
	require.GreaterOrEqual(h.t, time.Since(began), 3*pause, "it came before its time")
	h.wait("the outcome", func() bool { return w.ended(processor.Done) == 1 })
	require.NoError(h.t, w.stop())
	require.EqualValues(h.t, 3, w.ended(processor.Retried))
	require.Equal(h.t, []int{1, 2, 3, 4}, shown.list())
	h.once(q, "m1")
}

// Five deferrals, then two failures: dead by the second.
func deferralsAreNoAttempts(h *house) {
	q := h.open()
	h.send(q, "m1")
	var shown attempts
	var mu sync.Mutex
	deliveries := make(map[time.Time]bool)
	w := h.work(h.tx(func(_ context.Context, m *queue.Message, _ func() error) error {
		shown.note(m)
		mu.Lock()
		defer mu.Unlock()
		if deliveries[m.DeliverTime] = true; len(deliveries) <= 5 {
			return processor.Snooze(0)
		}
		return errNo
	}), func(c *processor.Config) { c.MaxAttempts = 2 })
	h.wait("its death", func() bool { return w.ended(processor.DeadLettered) == 1 })
	require.NoError(h.t, w.stop())
	require.EqualValues(h.t, 5, w.ended(processor.Snoozed))
	require.EqualValues(h.t, 1, w.ended(processor.Retried))
	require.Equal(h.t, []int{1, 2}, shown.list())
	require.Equal(h.t, 1, h.letters())
	require.Zero(h.t, h.left(q))
}

// die takes the next message as a processor does that is killed in its handler.
func (h *house) die() {
	h.t.Helper()
	q := h.open()
	m := h.receive(q)
	_, err := q.Backend().(backend.Ledger).Begin(h.t.Context(), []backend.Delivery{m.Delivery()})
	require.NoError(h.t, err)
}

// With MaxAttempts 1 a message whose process was killed gets another call; after the second kill it is given up unseen.
func killers(h *house) {
	q := h.open()
	h.send(q, "m1")
	h.die()
	var shown attempts
	w := h.work(h.tx(func(_ context.Context, m *queue.Message, effect func() error) error {
		shown.note(m)
		return effect()
	}), func(c *processor.Config) { c.MaxAttempts = 1 })
	h.wait("it to be done", func() bool { return w.ended(processor.Done) == 1 })
	require.NoError(h.t, w.stop())
	require.Equal(h.t, []int{2}, shown.list())
	h.once(q, "m1")

	h.send(q, "m2")
	h.die()
	h.die()
	w = h.work(h.tx(just), func(c *processor.Config) { c.MaxAttempts = 1 })
	h.wait("its death", func() bool { return w.ended(processor.DeadLettered) == 1 })
	require.NoError(h.t, w.stop())
	require.Zero(h.t, h.effects("m2"))
	require.Zero(h.t, h.left(q))
	require.Equal(h.t, 1, h.letters())
}

func snoozeIsNoFailure(h *house) {
	q := h.open()
	h.send(q, "m1")
	const pause = 300 * time.Millisecond
	var mu sync.Mutex
	starts := make(map[time.Time]time.Time) // by the due time of the delivery: the first of its runs
	w := h.work(h.tx(func(_ context.Context, m *queue.Message, effect func() error) error {
		mu.Lock()
		if _, again := starts[m.DeliverTime]; !again {
			starts[m.DeliverTime] = time.Now()
		}
		n := len(starts)
		mu.Unlock()
		if m.Attempt != 1 {
			return processor.Discard(fmt.Errorf("attempt %d", m.Attempt))
		}
		if n <= 5 {
			return processor.Snooze(pause)
		}
		return effect()
	}), func(c *processor.Config) { c.MaxAttempts = 1 })
	h.wait("the end", func() bool { return w.ended(processor.Done) == 1 })
	require.NoError(h.t, w.stop())
	require.EqualValues(h.t, 5, w.ended(processor.Snoozed))
	mu.Lock()
	defer mu.Unlock()
	var times []time.Time
	for _, at := range starts {
		times = append(times, at)
	}
	slices.SortFunc(times, time.Time.Compare)
	for i := 1; i < len(times); i++ {
		require.GreaterOrEqual(h.t, times[i].Sub(times[i-1]), pause)
	}
	h.once(q, "m1")
}
