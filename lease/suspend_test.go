package lease

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuetest"
	"github.com/stretchr/testify/require"
)

// machine is one that can be suspended: this process's clock and its timers then stand still.
type machine struct{ suspended atomic.Int64 }

func (m *machine) suspend(d time.Duration) { m.suspended.Add(int64(d)) }

// startOn starts a receiver on the machine.
func startOn(t *testing.T, m *machine, q *queue.Queue, c Config) *running {
	t.Helper()
	return startWith(t, q, c, func(r *Receiver) {
		r.book.clock = clock{func() time.Duration { return time.Duration(m.suspended.Load()) }}
	})
}

// The machine is suspended for longer than the lease: the holder is told soon after it wakes up, although by the process's
// own clock the lease would go on.
func TestSuspendedBeyondTheLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m, on := memory(t), &machine{}
		send(t, m.Queue(), 1)
		r := startOn(t, on, m.Queue(), Config{})
		h := r.next(time.Second)
		require.NoError(t, h.Confirm(t.Context()))
		ctx, cancel := h.Context(t.Context())
		defer cancel()
		time.Sleep(leaseLength / 4)
		on.suspend(leaseLength)
		woke := time.Now()
		require.True(t, h.Bound().Before(woke), "the bound is past at once")
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), ErrLost)
		require.LessOrEqual(t, time.Since(woke), leaseLength/8)
		require.ErrorIs(t, h.Confirm(t.Context()), ErrLost)
		require.Equal(t, int64(1), r.Stats().Lost)
		h.Release()
		r.end()
	})
}

// Confirm asks the database anew, or says that the lease is lost; it does not go by a bound that is past.
func TestConfirmAfterASuspension(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m, on := memory(t), &machine{}
		send(t, m.Queue(), 1)
		r := startOn(t, on, m.Queue(), Config{})
		h := r.next(time.Second)
		require.NoError(t, h.Confirm(t.Context()))
		on.suspend(leaseLength)
		require.ErrorIs(t, h.Confirm(t.Context()), ErrLost)
		h.Release()
		r.end()
	})
}

// A suspension that is shorter than the rest of the lease costs nothing; the lease is renewed soon after it.
func TestSuspendedWithinTheLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m, on := memory(t), &machine{}
		calls := watchRenewals(m, nil)
		send(t, m.Queue(), 1)
		r := startOn(t, on, m.Queue(), Config{})
		h := r.next(time.Second)
		require.NoError(t, h.Confirm(t.Context()))
		before := len(calls.since(time.Now()))
		on.suspend(leaseLength * 3 / 4)
		woke := time.Now()
		require.NoError(t, work(t.Context(), h, 3*leaseLength))
		require.LessOrEqual(t, calls.since(woke)[before], leaseLength/8)
		require.NoError(t, ack(t.Context(), m.Queue(), h))
		h.Release()
		r.end()
	})
}

// The time of a deferral goes on while the machine is suspended, as the database's does.
func TestSuspendedWhileDeferred(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m, on := memory(t), &machine{}
		on.suspend(time.Hour) // before anything began
		send(t, m.Queue(), 1)
		r := startOn(t, on, m.Queue(), Config{})
		h := r.next(time.Second)
		begun := time.Now()
		require.NoError(t, h.Defer(t.Context(), time.Hour))
		ctx, cancel := h.Context(t.Context())
		defer cancel()
		time.Sleep(time.Minute)
		on.suspend(30 * time.Minute)
		require.Equal(t, begun.Add(30*time.Minute), h.Bound())
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), ErrDeferralOver)
		require.GreaterOrEqual(t, time.Since(begun), 30*time.Minute)
		require.LessOrEqual(t, time.Since(begun), 30*time.Minute+leaseLength/8)
		h.Release()
		r.end()
	})
}

// The machine is suspended while a renewal is under way. The database may have renewed before that.
func TestSuspendedDuringARenewal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m, on := memory(t), &machine{}
		m.Nth(queuetest.OpRenew, 1, queuetest.Fault{After: 100 * time.Millisecond})
		send(t, m.Queue(), 1)
		r := startOn(t, on, m.Queue(), Config{})
		h := r.next(time.Second)
		time.AfterFunc(50*time.Millisecond, func() { on.suspend(leaseLength) })
		require.ErrorIs(t, h.Confirm(t.Context()), ErrLost)
		h.Release()
		r.end()
	})
}

// What waited while the machine was suspended is not started before it is known to be ours.
func TestSuspendedWithMessagesThatWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m, on := memory(t), &machine{}
		send(t, m.Queue(), 1)
		r := startOn(t, on, m.Queue(), Config{LowWater: 1})
		time.Sleep(leaseLength / 4)
		require.Equal(t, 1, r.Stats().Waiting)
		on.suspend(leaseLength)
		r.none(leaseLength / 4)
		h := r.next(2 * leaseLength)
		require.Equal(t, int64(1), r.Stats().Expired, "it was dropped, and has come again")
		h.Release()
		r.end()
	})
}
