package lease

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuetest"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// Every renewal but the first is refused, the handler goes on for three leases, and another worker finishes the message
// meanwhile: the first one is told at the bound, and commits nothing.
func TestLeaseIsLostAtTheBound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		refused := queuetest.Fault{Err: queuetest.Code(codes.Unavailable)}
		m.SetFault(queuetest.OpRenew, func(n int) queuetest.Fault {
			if n == 1 {
				return queuetest.Fault{}
			}
			return refused
		})
		send(t, m.Queue(), 1)
		a := start(t, m.Queue(), Config{})
		h := a.next(time.Second)
		require.NoError(t, h.Confirm(t.Context()))
		bound := h.Bound()
		ctx, cancel := h.Context(t.Context())
		defer cancel()
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), ErrLost)
		require.Equal(t, bound, time.Now())
		require.Equal(t, int64(1), a.Stats().Lost)
		tries := a.Stats().RenewErrors
		require.Greater(t, tries, int64(3))

		late, cancelLate := h.Context(t.Context())
		defer cancelLate()
		require.ErrorIs(t, context.Cause(late), ErrLost, "a context made later is over at once")
		require.ErrorIs(t, h.Confirm(t.Context()), ErrLost)
		require.ErrorIs(t, h.Defer(t.Context(), time.Hour), ErrLost)

		b := start(t, m.Queue(), Config{})
		other := b.next(2 * leaseLength)
		require.NoError(t, ack(t.Context(), m.Queue(), other))
		other.Release()
		time.Sleep(3 * leaseLength)
		require.ErrorIs(t, ack(t.Context(), m.Queue(), h), queue.ErrNotHeld)
		require.Equal(t, tries, a.Stats().RenewErrors, "what is lost is not renewed")
		h.Release()
		a.end()
		b.end()
	})
}

// A row that was on its way for longer than its lease is not started on, and not by Confirm either.
func TestLateRow(t *testing.T) {
	for _, certain := range []bool{false, true} {
		t.Run("", func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				m := memory(t)
				m.Nth(queuetest.OpRow, 1, queuetest.Fault{Before: leaseLength + 100*time.Millisecond})
				send(t, m.Queue(), 1)
				r := start(t, m.Queue(), Config{})
				if certain {
					h := r.next(2 * leaseLength)
					require.ErrorIs(t, h.Confirm(t.Context()), ErrLost)
					h.Release()
				} else {
					// Nobody is there to take it; by the time that somebody is, it is known to be dead.
					ctx, cancel := context.WithTimeout(t.Context(), leaseLength)
					_, err := r.Next(ctx)
					require.Error(t, err)
					cancel()
					time.Sleep(leaseLength)
				}
				h := r.next(2 * leaseLength)
				require.NoError(t, h.Confirm(t.Context()), "it comes again")
				require.NoError(t, ack(t.Context(), m.Queue(), h))
				h.Release()
				r.end()
			})
		})
	}
}

func TestConfirm(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		send(t, m.Queue(), 1)
		r := start(t, m.Queue(), Config{})
		h := r.next(time.Second)
		require.True(t, h.Bound().IsZero(), "what is left of a lease that came with a message is not known")

		m.Nth(queuetest.OpRenew, 1, queuetest.Fault{Stall: true})
		gone, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		time.AfterFunc(10*time.Millisecond, func() { cancel(enough) })
		require.ErrorIs(t, h.Confirm(gone), enough)

		require.NoError(t, h.Confirm(t.Context()), "a call without an answer is made again")

		send(t, m.Queue(), 2)
		other := r.next(time.Second)
		begun := time.Now()
		require.NoError(t, other.Confirm(t.Context()))
		require.Zero(t, time.Since(begun), "a first renewal that is waited for is made at once")
		require.NoError(t, ack(t.Context(), m.Queue(), other))
		other.Release()
		calls := m.Counts().RenewCalls
		require.NoError(t, h.Confirm(t.Context()))
		require.Equal(t, calls, m.Counts().RenewCalls, "confirmed is confirmed")

		require.NoError(t, ack(t.Context(), m.Queue(), h))
		h.Release()
		require.ErrorIs(t, h.Confirm(t.Context()), ErrReleased)
		r.end()
	})
}

// Those who ask again and again while renewals fail do not make more of them.
func TestConfirmMakesNoHotLoop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		m.SetFault(queuetest.OpRenew, queuetest.Always(queuetest.Fault{Err: queuetest.Code(codes.Unavailable)}))
		send(t, m.Queue(), 1)
		r := start(t, m.Queue(), Config{})
		h := r.next(time.Second)
		for range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			require.ErrorIs(t, h.Confirm(ctx), context.DeadlineExceeded)
			cancel()
		}
		require.LessOrEqual(t, r.Stats().RenewCalls, int64(8))
		require.ErrorIs(t, h.Confirm(t.Context()), ErrLost)
		h.Release()
		r.end()
	})
}

// Release while Confirm waits.
func TestConfirmEndsWithRelease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		m.SetFault(queuetest.OpRenew, queuetest.Always(queuetest.Fault{Stall: true}))
		send(t, m.Queue(), 1)
		r := start(t, m.Queue(), Config{})
		h := r.next(time.Second)
		time.AfterFunc(10*time.Millisecond, h.Release)
		require.ErrorIs(t, h.Confirm(t.Context()), ErrReleased)
		r.end()
	})
}

func TestContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		send(t, m.Queue(), 1)
		r := start(t, m.Queue(), Config{})
		h := r.next(time.Second)
		require.NoError(t, h.Confirm(t.Context()))

		parentsEnd := errors.New("the parent's end")
		parent, end := context.WithCancelCause(t.Context())
		ctx, cancel := h.Context(parent)
		time.Sleep(5 * leaseLength)
		require.NoError(t, ctx.Err(), "a renewed lease ends no context")
		end(parentsEnd)
		require.ErrorIs(t, context.Cause(ctx), parentsEnd)
		cancel()

		ctx, cancel = h.Context(t.Context())
		require.False(t, h.Bound().IsZero())
		h.Release()
		require.True(t, h.Bound().IsZero(), "nothing is certain after Release")
		time.Sleep(5 * leaseLength)
		require.NoError(t, ctx.Err(), "after Release it is the parent's child and no more")
		cancel()
		require.ErrorIs(t, context.Cause(ctx), context.Canceled)
		r.end()
	})
}

// A stopped message is renewed no more, and is not handed out a second time here while whoever has it has not let go.
func TestStop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		send(t, m.Queue(), 1)
		r := start(t, m.Queue(), Config{})
		h := r.next(time.Second)
		require.NoError(t, h.Confirm(t.Context()))
		ctx, cancel := h.Context(t.Context())
		defer cancel()
		h.Stop()
		bound := h.Bound()
		<-ctx.Done()
		require.Equal(t, bound, time.Now())
		require.ErrorIs(t, context.Cause(ctx), ErrLost)
		require.Zero(t, r.Stats().Lost, "it was given up, not lost")

		r.none(2 * leaseLength)
		require.Positive(t, m.Counts().LeasesEnded)
		require.Positive(t, r.Stats().Again)
		h.Release()
		again := r.next(2 * leaseLength)
		again.Release()
		r.end()
	})
}

// The lease ended in the database, and the message came back to the same worker while it is being worked on: it is not
// started a second time, and the new lease carries on the old one.
func TestMessageComesBackWhileInHand(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		send(t, m.Queue(), 1)
		r := start(t, m.Queue(), Config{LowWater: 10})
		h := r.next(time.Second)
		first := h.Message()
		m.SetFault(queuetest.OpRenew, queuetest.Always(queuetest.Fault{Stall: true}))
		time.Sleep(leaseLength + 50*time.Millisecond)
		m.SetFault(queuetest.OpRenew, nil)
		require.Equal(t, 2, m.Counts().Delivered)
		require.NotEqual(t, first.Lease.Token, h.Message().Lease.Token, "it is held by its new lease")
		require.True(t, first.DeliverTime.Equal(h.Message().DeliverTime))
		r.none(5 * leaseLength)
		require.Equal(t, int64(1), r.Stats().Again)
		require.Equal(t, 1, m.Counts().LeasesEnded, "since then it has been kept")
		require.NoError(t, ack(t.Context(), m.Queue(), h))
		h.Release()
		r.end()
	})
}

// The lease was lost, its holder has been told and does not end, and the message comes back to the same worker: it is not
// kept for a holder that has it no longer, and goes on to others.
func TestMessageComesBackAfterItsHolderWasTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		send(t, m.Queue(), 1)
		a := start(t, m.Queue(), Config{LowWater: 10})
		h := a.next(time.Second)
		require.NoError(t, h.Confirm(t.Context()))
		ctx, cancel := h.Context(t.Context())
		defer cancel()
		m.SetFault(queuetest.OpRenew, queuetest.Always(queuetest.Fault{Stall: true}))
		<-ctx.Done()
		m.SetFault(queuetest.OpRenew, nil)
		time.Sleep(leaseLength / 2)
		require.Equal(t, int64(1), a.Stats().Again)
		renewed := a.Stats().Renewed
		a.stop()
		b := start(t, m.Queue(), Config{})
		other := b.next(leaseLength)
		require.Equal(t, renewed, a.Stats().Renewed)
		require.ErrorIs(t, h.Confirm(t.Context()), ErrLost)
		require.NoError(t, ack(t.Context(), m.Queue(), other))
		other.Release()
		h.Release()
		require.NoError(t, <-a.ended)
		b.end()
	})
}

// While the message is acknowledged its token goes dead, which is no news.
func TestSettlingIsQuiet(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		send(t, m.Queue(), 1)
		r := start(t, m.Queue(), Config{})
		h := r.next(time.Second)
		require.NoError(t, h.Confirm(t.Context()))
		h.Settling()
		require.NoError(t, ack(t.Context(), m.Queue(), h))
		time.Sleep(3 * leaseLength) // the commit's answer takes that long
		require.Equal(t, int64(1), r.Stats().Unusable)
		require.Zero(t, r.Stats().Lost)
		h.Release()
		r.end()
	})
}
