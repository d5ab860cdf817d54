package conformance_test

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/lease"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
)

func everyMessageOnce(h *house) {
	q := h.open()
	all := ids(20)
	h.send(q, all...)
	a, b := h.work(h.tx(just)), h.work(h.tx(just))
	h.wait("all to be done", func() bool { return a.ended(processor.Done)+b.ended(processor.Done) == 20 })
	require.NoError(h.t, a.stop())
	require.NoError(h.t, b.stop())
	h.once(q, all...)
}

// batch makes a Batch handler that fails at the message with the given id.
func (h *house) batch(bad string) processor.Handler {
	return processor.Batch(func(ctx context.Context, tx *spanner.ReadWriteTransaction, ms []*queue.Message) error {
		for _, m := range ms {
			if m.Key[0] == bad {
				return errors.New("poison")
			}
			if err := h.effect(ctx, tx, m); err != nil {
				return err
			}
		}
		return nil
	})
}

func batchOnce(h *house) {
	q := h.open()
	all := ids(20)
	h.send(q, all...)
	w := h.work(h.batch(""))
	h.wait("all to be done", func() bool { return w.ended(processor.Done) == 20 })
	require.NoError(h.t, w.stop())
	h.once(q, all...)
	require.Less(h.t, w.Figures().Runs-w.Figures().Aborts, int64(20))
}

func batchPoison(h *house) {
	q := h.open()
	all := ids(9)
	h.send(q, append(all, "bad")...)
	w := h.work(h.batch("bad"), func(c *processor.Config) { c.MaxAttempts = 1 })
	h.wait("the end", func() bool { return w.ended(processor.Done) == 9 && w.ended(processor.DeadLettered) == 1 })
	require.NoError(h.t, w.stop())
	require.Equal(h.t, 1, h.letters())
	require.Zero(h.t, h.effects("bad"))
	h.once(q, all...)
}

// call makes a Call handler that has its effect in Settle.
func (h *house) call(f func(context.Context, *lease.Held) error) processor.Handler {
	return processor.Call[int]{
		Call: func(ctx context.Context, held *lease.Held) (int, error) { return 0, f(ctx, held) },
		Settle: func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message, _ int) error {
			return h.effect(ctx, tx, m)
		},
	}
}

// takes stands for work that takes some time.
func takes(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// slow makes a Call handler that takes some time, and counts its calls: but for those that were told that they had lost
// their lease, which happens where the machine is too busy to renew it in time.
func (h *house) slow(calls *atomic.Int64, d time.Duration) processor.Handler {
	return h.call(func(ctx context.Context, _ *lease.Held) error {
		err := takes(ctx, d)
		if !errors.Is(err, lease.ErrLost) {
			calls.Add(1)
		}
		return err
	})
}

func callOnce(h *house) {
	q := h.open()
	h.send(q, "m1")
	var calls atomic.Int64
	handler := h.slow(&calls, 5*h.length/2) // without renewals it would never be done
	a, b := h.work(handler), h.work(handler)
	h.wait("it to be done", func() bool { return a.ended(processor.Done)+b.ended(processor.Done) == 1 })
	require.NoError(h.t, a.stop())
	require.NoError(h.t, b.stop())
	h.once(q, "m1")
	require.EqualValues(h.t, 1, calls.Load(), "renewals keep others away")
}

func deferral(h *house) {
	q := h.open()
	h.send(q, "m1")
	var calls atomic.Int64
	handler := h.call(func(ctx context.Context, held *lease.Held) error {
		calls.Add(1)
		if err := held.Defer(ctx, patience); err != nil {
			return err
		}
		return takes(ctx, 3*h.length/2)
	})
	a, b := h.work(handler), h.work(handler)
	h.wait("it to be done", func() bool { return a.ended(processor.Done)+b.ended(processor.Done) == 1 })
	require.NoError(h.t, a.stop())
	require.NoError(h.t, b.stop())
	require.EqualValues(h.t, 1, calls.Load())
	h.once(q, "m1")
}

// A call that fails after a checkpoint comes again with the state that it had reached.
func checkpoint(h *house) {
	q := h.open()
	h.send(q, "m1")
	w := h.work(h.call(func(ctx context.Context, held *lease.Held) error {
		if string(held.Message().Payload) == "second half" {
			return nil
		}
		if err := held.Checkpoint(ctx, []byte("second half"), patience); err != nil {
			return err
		}
		return errNo
	}))
	h.wait("it to be done", func() bool { return w.ended(processor.Done) == 1 })
	require.NoError(h.t, w.stop())
	require.EqualValues(h.t, 1, w.ended(processor.Retried))
	h.once(q, "m1")
}

func failedLeavesNothing(h *house) {
	q := h.open()
	h.send(q, "m1")
	w := h.work(h.tx(func(_ context.Context, m *queue.Message, effect func() error) error {
		if err := effect(); err != nil {
			return err
		}
		switch m.Attempt {
		case 1:
			return errors.New("no")
		case 2:
			panic("no")
		}
		return nil
	}))
	h.wait("it to be done", func() bool { return w.ended(processor.Done) == 1 })
	require.NoError(h.t, w.stop())
	require.EqualValues(h.t, 2, w.ended(processor.Retried))
	h.once(q, "m1")
}
