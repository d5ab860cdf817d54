package lease_test

import (
	"testing"
	"time"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/lease"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// Work of several leases, with Google's client and one renewal that goes wrong. A second worker waits all the time.
func TestEmulatorRenewalsKeepTheMessage(t *testing.T) {
	for name, do := range map[string]fault.Action{
		"all is well":                     {},
		"one is late":                     fault.Delay(600 * time.Millisecond),
		"one answer is late":              fault.DelayReply(600 * time.Millisecond),
		"one is refused, unavailable":     fault.Before(codes.Unavailable, "try again"),
		"one is refused, internal":        fault.Before(codes.Internal, "no"),
		"one is lost with its connection": fault.Cut(),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 3*time.Second, 0)
			w.send(1)
			done := make(chan struct{})
			a := w.work(lease.Config{}, until(done))
			a.started()
			var handle *fault.Handle
			if do != (fault.Action{}) {
				handle = w.fault(renewals(2, 1, do))
			}
			b := w.work(lease.Config{}, lasting(0))
			renewed := a.Stats().Renewed
			require.Eventually(t, func() bool {
				return a.Stats().Renewed >= renewed+3 || a.Stats().Lost > 0
			}, patience, 10*time.Millisecond)
			close(done)
			for _, err := range a.outcomes(1) {
				require.NoError(t, err)
			}
			if handle != nil {
				require.Equal(t, 1, handle.Applied(), "the fault was not applied")
			}
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
			done := make(chan struct{})
			a := w.work(lease.Config{}, until(done))
			a.started()
			handle := w.fault(renewals(1, 1, do))
			b := w.work(lease.Config{}, lasting(0))
			require.ErrorIs(t, a.outcomes(1)[0], lease.ErrLost)
			close(done)
			require.Equal(t, 1, handle.Applied(), "the fault was not applied")
			require.Eventually(t, func() bool {
				return len(a.begun())+len(b.begun()) >= 2
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
