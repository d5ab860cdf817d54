package lease

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuetest"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// A message is worked on for 3.5 leases while a second worker waits for it, and one renewal goes wrong.
func TestRenewalsKeepTheMessage(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]queuetest.Fault{
		"all is well":                   {},
		"a late renewal":                {Before: 800 * time.Millisecond},
		"a late answer":                 {After: 800 * time.Millisecond},
		"refused, not forwarded":        {Err: queuetest.Code(codes.Unavailable)},
		"no answer, not forwarded":      {Stall: true},
		"an answer, but not from there": {Err: queuetest.Code(codes.Internal)},
	} {
		for _, certain := range []bool{false, true} {
			for n := 1; n <= 3; n++ {
				t.Run(fmt.Sprintf("%s, call %d, certain %v", name, n, certain), func(t *testing.T) {
					bubble(t, func(t *testing.T) {
						m := memory(t)
						calls := watchRenewals(m, map[int]queuetest.Fault{n: fault})
						send(t, m.Queue(), 1)
						a := start(t, m.Queue(), Config{})
						h := a.next(time.Second)
						begun := time.Now()
						b := start(t, m.Queue(), Config{})
						other := make(chan struct{})
						go func() {
							defer close(other)
							b.none(8 * time.Second)
						}()

						if certain {
							require.NoError(t, h.Confirm(t.Context()))
							require.NoError(t, work(t.Context(), h, 7*time.Second))
						} else {
							time.Sleep(7 * time.Second)
						}
						require.NoError(t, ack(t.Context(), m.Queue(), h))
						h.Release()
						<-other

						require.Zero(t, m.Counts().LeasesEnded)
						require.Zero(t, a.Stats().Lost)
						times := calls.since(begun)
						require.GreaterOrEqual(t, len(times), 3)
						if !certain {
							require.GreaterOrEqual(t, times[0], leaseLength/2*19/20, "the first renewal is at about half the lease")
							require.LessOrEqual(t, times[0], leaseLength/2)
						}
						a.end()
						b.end()
					})
				})
			}
		}
	}
}

// The next renewal is planned from the send time of the last success, not from its answer.
func TestRenewalIsPlannedFromTheSendTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		slow := queuetest.Fault{After: 300 * time.Millisecond}
		calls := watchRenewals(m, map[int]queuetest.Fault{1: slow, 2: slow, 3: slow, 4: slow})
		send(t, m.Queue(), 1)
		r := start(t, m.Queue(), Config{})
		h := r.next(time.Second)
		time.Sleep(5 * time.Second)
		times := calls.since(time.Now())
		require.Len(t, times, 5)
		for i := 1; i < len(times); i++ {
			require.InDelta(t, leaseLength/2, times[i]-times[i-1], float64(leaseLength/40))
		}
		h.Release()
		r.end()
	})
}

// A renewal lands, its answer is lost, and the token that it made is known to nobody. The lease lives on to its end; the
// bound of the renewal before is kept to the end and not beyond, and the effect happens once.
func TestRenewalLandedAndLost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		watchRenewals(m, map[int]queuetest.Fault{2: {Err: queuetest.Code(codes.Unavailable), Landed: true}})
		send(t, m.Queue(), 1)
		a := start(t, m.Queue(), Config{})
		h := a.next(time.Second)
		require.NoError(t, h.Confirm(t.Context()))
		begun, bound := time.Now(), h.Bound()
		require.Equal(t, leaseLength-leaseLength/marginPart, bound.Sub(begun))
		b := start(t, m.Queue(), Config{})

		require.ErrorIs(t, work(t.Context(), h, 7*time.Second), ErrLost)
		require.Equal(t, bound, time.Now(), "the context ends at the bound, neither at the failure nor later")
		require.Equal(t, int64(1), a.Stats().Lost)
		require.Equal(t, int64(1), a.Stats().Unusable)
		require.Equal(t, 0, m.Counts().LeasesEnded, "the database's lease is longer than ours")

		// The one that was told to stop does not listen, and the other one has the message meanwhile. One of them wins.
		other := b.next(2 * leaseLength)
		require.NoError(t, ack(t.Context(), m.Queue(), other))
		require.Error(t, ack(t.Context(), m.Queue(), h))
		h.Release()
		other.Release()
		queuetest.RequireEmpty(t, m.Queue())
		a.end()
		b.end()
	})
}

// A Tx handler's message is kept as long as that can do any good, and nothing is ended for it.
func TestLostAnswerEndsNothingForATransaction(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		send(t, m.Queue(), 1)
		r := start(t, m.Queue(), Config{Margin: leaseLength / 4})
		h := r.next(time.Second)
		time.Sleep(leaseLength/2 + time.Millisecond)
		bound := h.Bound()
		require.False(t, bound.IsZero(), "renewed once")
		m.SetFault(queuetest.OpRenew, queuetest.Always(queuetest.Fault{Err: queuetest.Code(codes.Unavailable)}))
		time.Sleep(time.Until(bound) + leaseLength/10) // past the bound, but the lease lives yet
		require.Equal(t, bound, h.Bound())
		m.SetFault(queuetest.OpRenew, nil)
		time.Sleep(4 * leaseLength)
		require.Zero(t, m.Counts().LeasesEnded, "the last moments were used")
		require.NoError(t, ack(t.Context(), m.Queue(), h))
		h.Release()
		r.end()
	})
}

// A renewal that is never answered is given up when it can do no good any more, and those are few.
func TestRenewalsAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := &countsRenewals{Memory: memory(t)}
		m.SetFault(queuetest.OpRenew, queuetest.Always(queuetest.Fault{Stall: true}))
		q := queue.FromBackend(m)
		send(t, q, 1)
		r := start(t, q, Config{})
		h := r.next(time.Second)
		time.Sleep(leaseLength * 99 / 100)
		require.Positive(t, m.underWay.Load())
		require.LessOrEqual(t, m.underWay.Load(), int64(8))
		time.Sleep(leaseLength / 5)
		require.Zero(t, m.underWay.Load())
		h.Release()
		r.end()
	})
}

// countsRenewals counts the renewal calls that are under way.
type countsRenewals struct {
	*queuetest.Memory
	underWay atomic.Int64
}

func (c *countsRenewals) Renew(ctx context.Context, tokens []string) (map[string]backend.Renewal, error) {
	c.underWay.Add(1)
	defer c.underWay.Add(-1)
	return c.Memory.Renew(ctx, tokens)
}

// slowRenewals answers a renewal after a while, as a service does: only what is under way can be shared.
type slowRenewals struct {
	*queuetest.Memory
}

func (s slowRenewals) Renew(ctx context.Context, tokens []string) (map[string]backend.Renewal, error) {
	renewals, err := s.Memory.Renew(ctx, tokens)
	time.Sleep(time.Millisecond)
	return renewals, err
}

// All that came is renewed by one call, and all that is held by one call a tick.
func TestRenewalsAreBatched(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		q := queue.FromBackend(slowRenewals{m})
		const n = 50
		var ids []int64
		for i := range int64(n) {
			ids = append(ids, i)
		}
		r := start(t, q, Config{})
		held := make(chan *Held)
		for range n {
			go func() {
				h := r.next(time.Minute)
				require.NoError(t, h.Confirm(t.Context()))
				held <- h
			}()
		}
		synctest.Wait()
		send(t, q, ids...)
		var all []*Held
		for range n {
			all = append(all, <-held)
		}
		require.LessOrEqual(t, m.Counts().RenewCalls, 2, "those who ask while a call is under way share the next one")
		before := m.Counts().RenewCalls
		time.Sleep(10 * leaseLength)
		// At most one call for each eighth of a lease would be 80; all were confirmed together, so it is about 20.
		require.LessOrEqual(t, m.Counts().RenewCalls-before, 25)
		require.Zero(t, m.Counts().LeasesEnded)
		for _, h := range all {
			h.Release()
		}
		r.end()
	})
}

// Ten thousand leases are kept by a handful of goroutines, and none ends.
func TestManyInHand(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const n = 10_000
		m := queuetest.New(jobs, queuetest.Options{})
		var ids []int64
		for i := range int64(n) {
			ids = append(ids, i)
		}
		send(t, m.Queue(), ids...)
		r := start(t, m.Queue(), Config{LowWater: 2 * n, MaxWait: time.Hour})
		var all []*Held
		for range n / 2 {
			all = append(all, r.next(time.Minute))
		}
		time.Sleep(time.Minute)
		require.Equal(t, n/2, r.Stats().Waiting)
		require.Equal(t, n/2, r.Stats().InHand)
		require.Zero(t, m.Counts().LeasesEnded)
		require.Equal(t, n, m.Counts().Delivered)
		// 12 calls of 900 each time, 12 times a minute or a little more often.
		require.Less(t, m.Counts().RenewCalls, 12*20)
		for _, h := range all {
			h.Release()
		}
		r.end()
	})
}
