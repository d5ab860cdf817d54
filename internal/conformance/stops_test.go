package conformance_test

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
)

func stopLeavesTheRest(h *house) {
	q := h.open()
	all := ids(4)
	h.send(q, all...)
	entered, open := make(chan struct{}), make(chan struct{})
	var enter sync.Once
	var mu sync.Mutex
	started := make(map[any]bool)
	a := h.work(h.tx(func(_ context.Context, m *queue.Message, effect func() error) error {
		mu.Lock()
		started[m.Key[0]] = true
		mu.Unlock()
		enter.Do(func() { close(entered) })
		<-open
		return effect()
	}), func(c *processor.Config) { c.Concurrency = 1; c.Receiver.LowWater = 4 })
	<-entered
	stopped := make(chan error, 1)
	go func() { stopped <- a.stop() }()
	h.wait("the stop to be seen", func() bool { return a.Figures().Receiver.Waiting == 0 })
	close(open)
	require.NoError(h.t, <-stopped)
	require.Len(h.t, started, 1, "nothing is started after the stop")
	b := h.work(h.tx(just))
	h.wait("the rest", func() bool { return b.ended(processor.Done) == 3 })
	require.NoError(h.t, b.stop())
	h.once(q, all...)
}

// F13: the stop comes just as the handler returns, or when it has some way to go: it commits, and nobody hears of it.
func stopAsHandlersReturn(h *house) {
	for id, rest := range map[string]time.Duration{"m1": 0, "m2": 500 * time.Millisecond} {
		q := h.open()
		h.send(q, id)
		entered, open := make(chan struct{}), make(chan struct{})
		var enter sync.Once
		w := h.work(h.tx(func(ctx context.Context, m *queue.Message, effect func() error) error {
			enter.Do(func() { close(entered) })
			<-open
			if err := takes(ctx, rest); err != nil {
				return err
			}
			return effect()
		}), func(c *processor.Config) { c.DrainTimeout = patience })
		<-entered
		stopped := make(chan error, 1)
		go func() { stopped <- w.stop() }()
		<-w.stopping
		close(open)
		require.NoError(h.t, <-stopped)
		require.Equal(h.t, map[processor.Outcome]int64{processor.Done: 1}, w.Figures().Deliveries)
		require.NotContains(h.t, w.logs.String(), "level=ERROR")
		h.once(q, id)
	}
}

func interruptedUsesNoAttempt(h *house) {
	q := h.open()
	h.send(q, "m1")
	entered := make(chan struct{})
	var enter sync.Once
	a := h.work(h.tx(func(ctx context.Context, _ *queue.Message, effect func() error) error {
		if err := effect(); err != nil {
			return err
		}
		enter.Do(func() { close(entered) })
		<-ctx.Done()
		return ctx.Err()
	}), func(c *processor.Config) { c.MaxAttempts, c.DrainTimeout = 1, 50*time.Millisecond })
	<-entered
	require.NoError(h.t, a.stop())
	require.EqualValues(h.t, 1, a.ended(processor.Interrupted))
	var attempt atomic.Int64
	b := h.work(h.tx(func(_ context.Context, m *queue.Message, effect func() error) error {
		attempt.Store(int64(m.Attempt))
		return effect()
	}), func(c *processor.Config) { c.MaxAttempts = 1 })
	h.wait("it to be done", func() bool { return b.ended(processor.Done) == 1 })
	require.NoError(h.t, b.stop())
	require.EqualValues(h.t, 1, attempt.Load())
	h.once(q, "m1")
}
