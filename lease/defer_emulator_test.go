package lease_test

import (
	"context"
	"testing"
	"time"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/internal/duetime"
	"github.com/spanqueue/spanqueue/lease"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// The commit of a deferral goes wrong: however it ends, the message is there once, and the delivery that Held shows is it.
func TestEmulatorDeferWithCommitTroubles(t *testing.T) {
	const rst = "stream terminated by RST_STREAM with code 2"
	for name, do := range map[string]fault.Action{
		"aborted":                         fault.Abort(),
		"lost, client asks again":         fault.After(codes.Unavailable, "try again"),
		"lost, client runs it again":      fault.After(codes.Internal, rst),
		"lost, unknown":                   fault.After(codes.Unknown, "unknown"),
		"no answer":                       fault.Drop(),
		"forgotten by a server":           fault.Forget(),
		"not forwarded, internal":         fault.Before(codes.Internal, "no"),
		"not forwarded, deadline":         fault.Before(codes.DeadlineExceeded, "no"),
		"connection lost before the call": fault.Cut(),
		"connection lost after the call":  fault.CutReply(),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 8*time.Second, 0)
			w.send(1)
			a := w.work(lease.Config{}, nil)
			h, err := a.Next(t.Context())
			require.NoError(t, err)
			require.NoError(t, h.Confirm(t.Context()))
			ctx, cancel := h.Context(t.Context())
			defer cancel()
			handle := w.fault(fault.Rule{Method: "Commit", Tag: "defer=Reports", Nth: 1, Times: 1, Do: do})
			require.NoError(t, h.Checkpoint(ctx, []byte("half"), time.Minute))
			require.Equal(t, 1, handle.Applied(), "the fault was not applied")
			require.NoError(t, ctx.Err())

			there, err := w.queue.Peek(t.Context(), 10)
			require.NoError(t, err)
			require.Len(t, there, 1)
			require.Equal(t, "half", string(there[0].Payload))
			require.True(t, there[0].DeliverTime.Equal(h.Message().DeliverTime))
			require.True(t, duetime.Marked(there[0].DeliverTime), "the digits below the microsecond survive")
			require.NoError(t, settle(t.Context(), w.queue, h.Message()))
			h.Release()
			a.end()
			w.once(1)
		})
	}
}

// The database's clock is half a minute off: the message is worked on once, and its deferral comes due by the database's
// clock, never early, after the work has ended.
func TestEmulatorClocksApart(t *testing.T) {
	for name, offset := range map[string]time.Duration{"ours is behind": 30 * time.Second, "ours is ahead": -30 * time.Second} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2*time.Second, offset)
			w.send(1)
			a := w.work(lease.Config{}, nil)
			h, err := a.Next(t.Context())
			require.NoError(t, err)
			require.NoError(t, h.Confirm(t.Context()))
			b := w.work(lease.Config{}, lasting(0))
			ctx, cancel := h.Context(t.Context())
			defer cancel()
			timer := time.NewTimer(3 * time.Second)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
				t.Fatal(context.Cause(ctx))
			}
			require.Empty(t, b.begun())

			begun := time.Now()
			require.NoError(t, h.Defer(ctx, 2*time.Second))
			due := h.Message().DeliverTime
			<-ctx.Done()
			require.ErrorIs(t, context.Cause(ctx), lease.ErrDeferralOver)
			require.GreaterOrEqual(t, time.Since(begun), 2*time.Second)
			require.Empty(t, b.begun(), "the work has ended before the message comes due")
			require.NoError(t, b.outcomes(1)[0])
			now, err := w.queue.ServerTime(t.Context())
			require.NoError(t, err)
			require.True(t, now.After(due), "received before %v, at %v", due, now)
			require.Less(t, time.Since(begun), 2*time.Second+patience)
			h.Release()
			a.end()
			b.end()
			w.once(1)
		})
	}
}
