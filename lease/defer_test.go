package lease

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuetest"
	"github.com/stretchr/testify/require"
)

// Work of many leases without a renewal: the message is out of reach meanwhile, and its new delivery is the one to
// acknowledge.
func TestDefer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		send(t, m.Queue(), 1)
		a := start(t, m.Queue(), Config{HandlerTimeout: 10 * time.Second})
		b := start(t, m.Queue(), Config{})
		h := a.next(time.Second)
		require.NoError(t, h.Confirm(t.Context()))
		ctx, cancel := h.Context(t.Context())
		defer cancel()
		received := h.Message()

		require.ErrorIs(t, h.Defer(ctx, 10*time.Second-1), ErrInvalid, "shorter than the handler may take")
		require.ErrorIs(t, h.Defer(ctx, 0), ErrInvalid)
		require.ErrorIs(t, h.Defer(ctx, math.MaxInt64), ErrInvalid)
		require.NoError(t, h.Defer(ctx, 20*time.Second))
		calls := m.Counts().RenewCalls
		b.none(19 * time.Second)
		require.NoError(t, ctx.Err())
		require.Equal(t, calls, m.Counts().RenewCalls, "there is nothing to renew")

		require.Equal(t, received.Key, h.Message().Key)
		require.Equal(t, "work", string(h.Message().Payload))
		require.True(t, h.Message().DeliverTime.After(received.DeliverTime))
		require.Empty(t, h.Message().Lease)
		v, ok := h.Message().Column("id")
		require.True(t, ok)
		require.Equal(t, int64(1), v)
		require.NoError(t, h.Confirm(ctx), "until its end the message is ours")

		require.NoError(t, h.Defer(ctx, 30*time.Second), "once more, from now")
		time.Sleep(25 * time.Second)
		require.NoError(t, ctx.Err())
		require.NoError(t, ack(t.Context(), m.Queue(), h))
		h.Release()
		queuetest.RequireEmpty(t, m.Queue())
		a.end()
		b.end()
	})
}

// What one message may take can be less than what others may, and more.
func TestDeferWithALimitOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		send(t, m.Queue(), 1)
		r := start(t, m.Queue(), Config{HandlerTimeout: 10 * time.Second})
		h := r.next(time.Second)
		h.Limit(20 * time.Second)
		require.ErrorContains(t, h.Defer(t.Context(), 15*time.Second), "at least HandlerTimeout, 20s")
		h.Limit(5 * time.Second)
		require.NoError(t, h.Defer(t.Context(), 5*time.Second))
		h.Release()
		r.end()
	})
}

// A checkpoint moves the payload forward. Whoever crashed after it is found again at the new due time, and the next one
// starts from there.
func TestCheckpoint(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		send(t, m.Queue(), 1)
		r := start(t, m.Queue(), Config{})
		h := r.next(time.Second)
		begun := time.Now()
		require.NoError(t, h.Checkpoint(t.Context(), []byte("half"), 10*time.Second))
		require.Equal(t, "half", string(h.Message().Payload))
		h.Release() // nothing else is done for it
		again := r.next(time.Minute)
		require.Equal(t, "half", string(again.Message().Payload))
		require.InDelta(t, 10*time.Second, time.Since(begun), float64(time.Second))
		require.NoError(t, again.Checkpoint(t.Context(), nil, time.Second))
		require.Equal(t, "half", string(again.Message().Payload), "nil keeps the payload")
		again.Release()
		require.ErrorIs(t, again.Defer(t.Context(), time.Second), ErrReleased)
		r.end()
	})
}

func TestCheckpointRefusesWhatCannotBeStored(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		send(t, m.Queue(), 1)
		r := start(t, m.Queue(), Config{})
		h := r.next(time.Second)
		require.ErrorIs(t, h.Checkpoint(t.Context(), make([]byte, 11<<20), time.Second), ErrInvalid)
		require.NoError(t, ack(t.Context(), m.Queue(), h), "the message is as it was")
		h.Release()
		r.end()
	})
}

// What else belongs to a move is done in its transaction, or fails it.
func TestCarry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		send(t, m.Queue(), 1)
		r := start(t, m.Queue(), Config{})
		h := r.next(time.Second)
		fails := errors.New("no room")
		var carried backend.Outgoing
		h.Carry(func(_ context.Context, _ backend.Tx, resent backend.Outgoing) error {
			carried = resent
			return fails
		})
		require.ErrorIs(t, h.Checkpoint(t.Context(), []byte("half"), time.Minute), fails)
		require.Equal(t, "work", string(h.Message().Payload))
		fails = nil
		require.NoError(t, h.Checkpoint(t.Context(), []byte("half"), time.Minute))
		require.Equal(t, h.Message().DeliverTime, carried.DeliverTime)
		require.NoError(t, ack(t.Context(), m.Queue(), h))
		h.Release()
		r.end()
	})
}

// A message comes due again while its holder goes on beyond the end of its time: it is not started here before the holder
// has let go, and whoever settles it first wins.
func TestDeferralOutlived(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		send(t, m.Queue(), 1)
		a := start(t, m.Queue(), Config{})
		h := a.next(time.Second)
		require.NoError(t, h.Defer(t.Context(), 5*time.Second))
		a.none(6 * time.Second)
		require.ErrorIs(t, h.Defer(t.Context(), time.Second), ErrDeferralOver)
		require.ErrorIs(t, h.Confirm(t.Context()), ErrDeferralOver)
		b := start(t, m.Queue(), Config{})
		other := b.next(3 * leaseLength)
		require.NoError(t, ack(t.Context(), m.Queue(), other))
		other.Release()
		require.ErrorIs(t, ack(t.Context(), m.Queue(), h), queue.ErrNotHeld)
		h.Release()
		a.end()
		b.end()
	})
}
