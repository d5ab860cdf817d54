package lease

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/queue"
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

// A row that was on its way for longer than the ones before has less left of its lease: it is renewed before it is started.
func TestMessageThatWasOnItsWayForLong(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		r := start(t, m.Queue(), Config{LowWater: 10})
		send(t, m.Queue(), 1)
		first := r.next(time.Second)
		require.True(t, first.Bound().IsZero())
		m.Nth(queuetest.OpRow, 1, queuetest.Fault{Before: leaseLength * 6 / 10})
		send(t, m.Queue(), 2)
		second := r.next(leaseLength)
		require.Equal(t, int64(2), id(second))
		require.False(t, second.Bound().IsZero())
		time.Sleep(3 * leaseLength)
		require.Zero(t, m.Counts().LeasesEnded)
		first.Release()
		second.Release()
		r.end()
	})
}

// The answer of a renewal is slow, the token is sent again and refused, as it must be: the first answer still counts.
func TestLateAnswerCountsAfterARefusal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		send(t, m.Queue(), 1)
		r := start(t, m.Queue(), Config{LowWater: 1})
		m.Nth(queuetest.OpRenew, 1, queuetest.Fault{After: leaseLength * 2 / 5})
		time.Sleep(leaseLength / 2 * 8 / 5)
		require.Equal(t, int64(2), r.Stats().RenewCalls)
		require.Equal(t, 1, r.Stats().Waiting, "the refusal is not the last word")
		h := r.next(leaseLength)
		require.False(t, h.Bound().IsZero())
		require.Zero(t, r.Stats().Unusable)
		time.Sleep(3 * leaseLength)
		require.Zero(t, m.Counts().LeasesEnded)
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
		time.Sleep(3 * leaseLength)
		require.Equal(t, int64(3), a.Stats().Received, "they are not taken again while no slot becomes free")
		b := start(t, m.Queue(), Config{})
		b.next(2 * leaseLength).Release()
		b.end()
		h.Release()
		time.Sleep(leaseLength * 3 / 2) // the leases of all have ended meanwhile
		require.Equal(t, 3, a.Stats().Waiting, "a slot has become free: as many are kept waiting as before")
		a.end()
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

// A queue that can take messages back gets those that are let go, at the stop too, and others have them at once.
func TestMessagesAreGivenBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := &takesBack{Memory: memory(t)}
		q := queue.FromBackend(m)
		send(t, q, 1, 2, 3, 4)
		r := start(t, q, Config{LowWater: 10, MaxWait: 2 * leaseLength})
		h := r.next(time.Second)
		time.Sleep(2*leaseLength + time.Millisecond)
		time.Sleep(100 * time.Millisecond)
		require.ElementsMatch(t, []int64{2, 3, 4}, m.taken())
		h.Release()
		r.next(2 * leaseLength).Release() // a slot has become free: messages are taken again
		time.Sleep(leaseLength * 5 / 4)
		synctest.Wait() // until what this moment brings has come
		waiting := r.Stats().Waiting
		require.Positive(t, waiting)
		r.end()
		require.Len(t, m.taken(), 3+waiting, "before Run returns")
	})
}

// takesBack notes what it is given back.
type takesBack struct {
	*queuetest.Memory
	mu  sync.Mutex
	got []int64
}

func (q *takesBack) Release(ctx context.Context, ds []backend.Delivery) error {
	select {
	case <-time.After(100 * time.Millisecond):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, d := range ds {
		if d.Token == "" {
			return errors.New("a delivery without a token")
		}
		q.got = append(q.got, d.Key[0].(int64))
	}
	return nil
}

func (q *takesBack) taken() []int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return append([]int64{}, q.got...)
}
