//go:build unix

package lease_test

import (
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/spanqueue/spanqueue/lease"
	"github.com/stretchr/testify/require"
)

// Ten thousand messages are held for a minute, a hundred of them in hand, through the front on the real emulator. A
// second worker with a free slot waits all the time: it would get the first message whose lease ended.
func TestEmulatorManyInFlight(t *testing.T) {
	if os.Getenv("SPANQUEUE_LONG") == "" {
		t.Skip("takes over a minute: SPANQUEUE_LONG=1")
	}
	const n, inHand = 10_000, 100
	w := newWorld(t, 10*time.Second, 0)
	before := runtime.NumGoroutine()
	a := w.work(lease.Config{LowWater: 2 * n, MaxWait: time.Hour}, nil)
	var ids []int64
	for i := range int64(n) {
		ids = append(ids, i)
	}
	w.send(ids...)
	require.Eventually(t, func() bool { return a.Stats().Received == n }, 5*time.Minute, 10*time.Millisecond)
	var held []*lease.Held
	for range inHand {
		h, err := a.Next(t.Context())
		require.NoError(t, err)
		require.NoError(t, h.Confirm(t.Context()))
		held = append(held, h)
	}
	b := w.work(lease.Config{}, lasting(0))

	start, cpu := a.Stats(), cpuTime(t)
	most := 0
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for over := false; !over; {
		select {
		case <-timer.C:
			over = true
		case <-ticker.C:
			most = max(most, runtime.NumGoroutine())
		}
	}
	end := a.Stats()
	t.Logf("%d messages in flight for a minute: %d renewal calls for %d leases, %v of CPU (client, front and test in one process), %d goroutines before, %d at most",
		n, end.RenewCalls-start.RenewCalls, end.Renewed-start.Renewed, (cpuTime(t) - cpu).Round(time.Millisecond), before, most)
	t.Logf("%+v", end)
	require.Equal(t, n-inHand, end.Waiting)
	require.Equal(t, inHand, end.InHand)
	require.Empty(t, b.begun(), "a lease has ended")
	require.Zero(t, end.Lost+end.Expired+end.LetGo+end.Again+end.Unusable)
	require.Less(t, most-before, 200, "goroutines do not grow with the messages")
	for _, h := range held {
		h.Release()
	}
	a.end()
	b.end()
}

func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
