package lease_test

import (
	"testing"
	"time"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/lease"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// Work of several leases, with Google's client and one renewal that goes wrong. A second worker waits all the
// time. The first renewal is that of Confirm.
func TestEmulatorRenewalsKeepTheMessage(t *testing.T) {
	for name, do := range map[string]fault.Action{
		"all is well":                     {},
		"one is late":                     fault.Delay(800 * time.Millisecond),
		"one answer is late":              fault.DelayReply(800 * time.Millisecond),
		"one is refused, unavailable":     fault.Before(codes.Unavailable, "try again"),
		"one is refused, internal":        fault.Before(codes.Internal, "no"),
		"one is lost with its connection": fault.Cut(),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2*time.Second, 0)
			w.send(1)
			var handle *fault.Handle
			if do != (fault.Action{}) {
				handle = w.fault(renewals(3, 1, do))
			}
			lasts := 7 * time.Second
			if handle != nil {
				lasts = 5 * time.Second // the third call is made after two at most
			}
			a := w.work(lease.Config{}, lasting(lasts))
			require.Eventually(t, func() bool { return len(a.begun()) == 1 }, patience, time.Millisecond)
			b := w.work(lease.Config{}, lasting(0))
			for _, err := range a.outcomes(1) {
				require.NoError(t, err)
			}
			if handle != nil {
				require.Equal(t, 1, handle.Applied(), "the fault was not applied")
			}
			require.GreaterOrEqual(t, a.Stats().Renewed, int64(4))
			require.Zero(t, a.Stats().Lost)
			a.end()
			b.end()
			require.Equal(t, []int64{1}, a.begun())
			require.Empty(t, b.begun(), "the second worker received nothing")
			w.once(1)
		})
	}
}

// A renewal lands and its answer is lost. Google's client asks again by itself, unseen, with a token that is dead by then.
// The first worker is told at its bound; the second gets the message a lease later; the effect happens once.
func TestEmulatorRenewalLandedAndLost(t *testing.T) {
	for name, do := range map[string]fault.Action{
		"unavailable":     fault.After(codes.Unavailable, "try again"),
		"internal":        fault.After(codes.Internal, "no"),
		"no answer":       fault.Drop(),
		"connection lost": fault.CutReply(),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2*time.Second, 0)
			w.send(1)
			handle := w.fault(renewals(2, 1, do))
			a := w.work(lease.Config{}, lasting(7*time.Second))
			require.Eventually(t, func() bool { return len(a.begun()) == 1 }, patience, time.Millisecond)
			begun := time.Now()
			b := w.work(lease.Config{}, lasting(0))
			require.ErrorIs(t, a.outcomes(1)[0], lease.ErrLost)
			require.Less(t, time.Since(begun), 3*time.Second, "at the bound, or when a busy machine gets to it, and not at the end of the work")
			require.Equal(t, 1, handle.Applied(), "the fault was not applied")
			require.Eventually(t, func() bool {
				return len(a.begun())+len(b.begun()) == 2
			}, patience, time.Millisecond, "the message comes again")
			require.Eventually(t, func() bool {
				s, err := w.queue.Stats(t.Context())
				return err == nil && s.Ready == 0
			}, patience, 10*time.Millisecond)
			a.end()
			b.end()
			w.once(1)
		})
	}
}
