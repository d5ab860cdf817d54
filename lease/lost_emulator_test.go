package lease_test

import (
	"context"
	"testing"
	"time"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/lease"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// Every renewal but the first is refused. The handler is told, and goes on all the same until another worker has finished
// the message: its acknowledgement misses, and nothing of it is kept.
func TestEmulatorLeaseIsLost(t *testing.T) {
	for name, code := range map[string]codes.Code{
		"seen":                              codes.FailedPrecondition,
		"unseen: the client asks by itself": codes.Unavailable,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2*time.Second, 0)
			w.send(1)
			told := make(chan error, 1)
			settled := make(chan struct{})
			a := w.work(lease.Config{}, func(ctx context.Context, q *queue.Queue, h *lease.Held) error {
				<-ctx.Done()
				told <- context.Cause(ctx)
				<-settled
				return settle(context.Background(), q, h.Message())
			})
			a.started()
			refused := w.fault(renewals(1, 1_000_000, fault.Before(code, "no")))
			b, err := lease.NewReceiver(w.open(), lease.Config{})
			require.NoError(t, err)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ended := make(chan error, 1)
			go func() { ended <- b.Run(ctx) }()
			h, err := b.Next(ctx)
			require.NoError(t, err)
			require.NoError(t, settle(t.Context(), w.queue, h.Message()))
			h.Release()

			require.ErrorIs(t, <-told, lease.ErrLost)
			close(settled)
			require.ErrorIs(t, a.outcomes(1)[0], queue.ErrNotHeld)
			require.Positive(t, refused.Applied())
			require.Equal(t, int64(1), a.Stats().Lost)
			stop()
			require.NoError(t, <-ended)
			a.end()
			w.once(1)
		})
	}
}

// A row is on its way for longer than its lease. No handler is begun on it.
func TestEmulatorLateRow(t *testing.T) {
	w := newWorld(t, 2*time.Second, 0)
	late := w.fault(fault.Rule{Method: "ExecuteStreamingSql", SQL: "RECEIVE_", Rows: true, Nth: 1, Do: fault.Delay(3 * time.Second)})
	w.send(1)
	a := w.work(lease.Config{}, lasting(0))
	require.Eventually(t, func() bool { return late.Applied() == 1 }, patience, time.Millisecond)
	b := w.work(lease.Config{}, lasting(0))
	require.NoError(t, b.outcomes(1)[0])
	require.Eventually(t, func() bool { return a.Stats().Received == 1 }, patience, time.Millisecond)
	require.ErrorIs(t, a.outcomes(1)[0], lease.ErrLost)
	a.end()
	b.end()
	require.Empty(t, a.begun())
	w.once(1)
}

// Five messages come to a worker with one slot, each takes half a lease, and a second worker waits.
func TestEmulatorMessagesThatWait(t *testing.T) {
	for name, c := range map[string]lease.Config{
		"taken as needed": {},
		"taken at once":   {LowWater: 10, MaxWait: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2*time.Second, 0)
			w.send(1, 2, 3, 4, 5)
			a := w.work(c, lasting(time.Second))
			a.started()
			b := w.work(lease.Config{}, lasting(time.Second))
			require.Eventually(t, func() bool {
				s, err := w.queue.Stats(t.Context())
				return err == nil && s.Ready == 0
			}, patience, 50*time.Millisecond)
			a.end()
			b.end()
			require.ElementsMatch(t, []int64{1, 2, 3, 4, 5}, append(a.begun(), b.begun()...), "no handler ran twice")
			if c.LowWater > 0 {
				require.Empty(t, b.begun())
			}
			w.once(1, 2, 3, 4, 5)
		})
	}
}
