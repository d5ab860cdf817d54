package processor_test

import (
	"context"
	"errors"
	"sync/atomic"
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

// call makes a handler whose Settle has the effect.
func call(f func(context.Context, *lease.Held) error) processor.Call[struct{}] {
	return processor.Call[struct{}]{
		Call: func(ctx context.Context, h *lease.Held) (struct{}, error) { return struct{}{}, f(ctx, h) },
		Settle: func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message, _ struct{}) error {
			return addOne(ctx, tx, m)
		},
	}
}

// callLease is the length of leases where a test goes wrong when one ends for no other reason than that the machine is busy.
const callLease = 2 * time.Second

// sleep is work of the given length that watches its context.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// After an unknown outcome of Settle only Settle runs again.
func TestOnlySettleRunsAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		action  fault.Action
		settles int64
	}{
		"it did not land": {fault.Before(codes.Internal, "broken"), 2},
		"it landed":       {fault.After(codes.Internal, "broken"), 1},
		"aborted":         {fault.Abort(), 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			h := w.fault(fault.Rule{Method: "Commit", Tag: "queue=Q", Nth: 1, Do: c.action})
			var calls, settles atomic.Int64
			r := w.handle(w.queue, processor.Call[int64]{
				Call: func(context.Context, *lease.Held) (int64, error) { return calls.Add(1), nil },
				Settle: func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message, result int64) error {
					settles.Add(1)
					if result != 1 {
						return errors.New("not the result of the call")
					}
					return addOne(ctx, tx, m)
				},
			})
			w.send("m1")
			w.applied(h)
			r.outcome(processor.Done, 1)
			require.NoError(t, r.stop())
			require.EqualValues(t, 1, calls.Load())
			require.Equal(t, c.settles, settles.Load())
			w.once("m1")
		})
	}
}
