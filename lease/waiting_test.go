package lease

import (
	"sync"
	"testing"
	"time"

	"github.com/spanqueue/spanqueue/queue/queuetest"
	"github.com/stretchr/testify/require"
)

// Five messages come in one receive to a worker with one slot, and each takes nearly a lease. A second worker waits.
func TestMessagesThatWaitAreKept(t *testing.T) {
	for name, c := range map[string]Config{
		"taken as needed": {},
		"taken at once":   {LowWater: 10, MaxWait: time.Hour},
		"some let go":     {LowWater: 10, MaxWait: leaseLength},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				m := memory(t)
				send(t, m.Queue(), 1, 2, 3, 4, 5)
				a := start(t, m.Queue(), c)
				time.Sleep(100 * time.Millisecond)
				b := start(t, m.Queue(), Config{})

				var mu sync.Mutex
				calls := make(map[int64]int)
				var workers sync.WaitGroup
				for _, r := range []*running{a, b} {
					workers.Go(func() {
						for {
							h, err := r.Next(t.Context())
							if err != nil {
								return
							}
							mu.Lock()
							calls[id(h)]++
							mu.Unlock()
							time.Sleep(leaseLength * 8 / 10)
							require.NoError(t, ack(t.Context(), m.Queue(), h))
							h.Release()
						}
					})
				}
				time.Sleep(10 * leaseLength)
				a.end()
				b.end()
				workers.Wait()
				queuetest.RequireEmpty(t, m.Queue())
				require.Equal(t, map[int64]int{1: 1, 2: 1, 3: 1, 4: 1, 5: 1}, calls)
				require.Zero(t, a.Stats().Expired)
				if c.MaxWait == leaseLength {
					require.Positive(t, a.Stats().LetGo)
				} else {
					require.Zero(t, m.Counts().LeasesEnded)
				}
			})
		})
	}
}

// A message whose lease could not be renewed while it waited is not started: neither in the second half of the lease that
// it came with, nor after it.
func TestMessageThatWaitedUnrenewedIsNotStarted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		send(t, m.Queue(), 1)
		r := start(t, m.Queue(), Config{LowWater: 1})
		m.SetFault(queuetest.OpRenew, queuetest.Always(queuetest.Fault{Stall: true}))
		time.Sleep(leaseLength/2 + 10*time.Millisecond)
		require.Equal(t, 1, r.Stats().Waiting)
		r.none(leaseLength/2 - 20*time.Millisecond)
		require.Equal(t, 1, r.Stats().Waiting)
		require.Zero(t, r.Stats().Expired)
		time.Sleep(20 * time.Millisecond)
		require.Equal(t, int64(1), r.Stats().Expired)

		m.SetFault(queuetest.OpRenew, nil)
		h := r.next(2 * leaseLength)
		h.Release()
		r.end()
	})
}

// A message that waited unrenewed can be started once a renewal has succeeded after all.
func TestMessageThatWaitedIsStartedOnceRenewed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		send(t, m.Queue(), 1)
		r := start(t, m.Queue(), Config{LowWater: 1})
		m.Nth(queuetest.OpRenew, 1, queuetest.Fault{After: 300 * time.Millisecond})
		time.Sleep(leaseLength/2 + 10*time.Millisecond)
		begun := time.Now()
		h := r.next(leaseLength)
		require.Greater(t, time.Since(begun), 200*time.Millisecond)
		require.False(t, h.Bound().IsZero())
		h.Release()
		r.end()
	})
}

// No slot has become free for a lease; the messages that wait are left to others.
func TestMessagesAreLetGo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		send(t, m.Queue(), 1, 2, 3)
		a := start(t, m.Queue(), Config{LowWater: 3, MaxWait: 2 * leaseLength})
		h := a.next(time.Second)
		require.Equal(t, 2, a.Stats().Waiting)
		time.Sleep(2*leaseLength + time.Millisecond)
		require.Zero(t, a.Stats().Waiting)
		require.Equal(t, int64(2), a.Stats().LetGo)
		b := start(t, m.Queue(), Config{})
		b.next(2 * leaseLength).Release()
		h.Release()
		a.end()
		b.end()
	})
}

// With all slots busy and none becoming free, nothing more is taken: others may have it.
func TestBusyWorkerTakesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		r := start(t, m.Queue(), Config{})
		time.AfterFunc(time.Second, func() { send(t, m.Queue(), 1) })
		h := r.next(time.Minute)
		send(t, m.Queue(), 2, 3, 4)
		time.Sleep(time.Minute)
		require.Zero(t, r.Stats().Waiting)
		require.Equal(t, 1, m.Counts().Delivered)
		h.Release()
		r.next(time.Second).Release()
		r.end()
	})
}
