package processor_test

import (
	"context"
	"errors"
	"sync/atomic"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/lease"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
)

// firstMessage is the one that fails, where one does.
const firstMessage = "m0"

// firstPayload is what the messages carry that a cell sends.
const firstPayload = "payload"

var errOwn = errors.New("the handler's own error")

// cellWork is the processor of a cell at its work.
type cellWork struct {
	*processor.Processor
	fault    *fault.Handle
	queue    *queue.Queue
	failures atomic.Int64 // of the handler's own
}

// handler makes the cell's handler: it adds 1 for each message, and does what the scene asks for.
func (c *cell) handler(w *cellWork) processor.Handler {
	scene := c.site.scene
	after := func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		switch first := m.Key[0] == firstMessage; {
		case first && scene.sends && string(m.Payload) == firstPayload:
			return w.sendAgain(tx, m)
		case first && (scene.dies || scene.fails && m.Attempt == 1):
			w.failures.Add(1)
			return errOwn
		case first && scene.waits && c.kind != kindCall:
			return waitFor(ctx, w.fault)
		}
		return nil
	}
	one := func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		defer func() {
			if errors.Is(context.Cause(ctx), processor.ErrHandlerTimeout) {
				w.failures.Add(1) // it had much more time than it needs: the machine is too slow, and that is not the database
			}
		}()
		if err := addOne(ctx, tx, m); err != nil {
			return err
		}
		return after(ctx, tx, m)
	}
	switch c.kind {
	case kindTx:
		return processor.Tx(one)
	case kindBatch:
		return processor.Batch(func(ctx context.Context, tx *spanner.ReadWriteTransaction, ms []*queue.Message) error {
			for _, m := range ms {
				if err := one(ctx, tx, m); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return processor.Call[int]{
		Call: func(ctx context.Context, held *lease.Held) (int, error) {
			switch {
			case scene.defers:
				// A deferral that fails is none, and the call goes on.
				if err := held.Defer(ctx, matrixDeferral); err != nil && ctx.Err() != nil {
					return 0, err
				}
			case scene.waits && held.Message().Key[0] == firstMessage:
				return 0, waitFor(ctx, w.fault)
			}
			return 0, nil
		},
		Settle: func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message, _ int) error {
			return one(ctx, tx, m)
		},
	}
}

// sendAgain sends the key of the message that is being handled, in the same transaction. Without the guard, a second run
// of the transaction would take the new message for the old one.
func (w *cellWork) sendAgain(tx *spanner.ReadWriteTransaction, m *queue.Message) error {
	next, err := w.queue.SendMutation(queue.Outgoing{Key: m.Key, Payload: []byte("second")})
	if err != nil {
		return err
	}
	return tx.BufferWrite([]*spanner.Mutation{next})
}

// waitFor returns when the fault has been applied, or after a while: a handler that waits for ever would prove nothing.
func waitFor(ctx context.Context, h *fault.Handle) error {
	short, cancel := context.WithTimeout(ctx, 2*matrixLease)
	defer cancel()
	_ = h.Wait(short) // whether it was applied is asked in the end
	return ctx.Err()
}
