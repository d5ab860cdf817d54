package idempotency

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// kept is a keeper with a lease of 30 s under a fake clock, and what it did.
type kept struct {
	*keeper
	start time.Time

	mu       sync.Mutex
	renewals []time.Duration
	lost     error
	stuck    int
}

// keepLease starts a keeper whose renewals take the given time and have the given
// answer.
func keepLease(ctx context.Context, took time.Duration, answer error) *kept {
	k := &kept{start: time.Now()}
	k.keeper = &keeper{
		lease: 30 * time.Second,
		renew: func(context.Context) error {
			sent := time.Now()
			k.note(func() { k.renewals = append(k.renewals, sent.Sub(k.start)) })
			time.Sleep(took)
			if answer == nil {
				k.renewed(sent)
			}
			return answer
		},
		lost:  func(err error) { k.note(func() { k.lost = errors.Join(k.lost, err) }) },
		stuck: func() { k.note(func() { k.stuck++ }) },
	}
	k.keeper.start(ctx, k.start)
	return k
}

func (k *kept) note(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
}

func (k *kept) seen() (renewals []time.Duration, stuck int, lost error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.renewals), k.stuck, k.lost
}

// pass lets time pass, and what is due then be done.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestKeeperRenewsAtAThirdFromTheTimeOfSending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keepLease(t.Context(), 2*time.Second, nil)
		pass(35 * time.Second)
		k.stop()
		renewals, _, lost := k.seen()
		require.Equal(t, []time.Duration{10 * time.Second, 20 * time.Second, 30 * time.Second}, renewals)
		require.NoError(t, lost)
	})
}

func TestKeeperLetsStepsRenew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keepLease(t.Context(), 0, nil)
		pass(8 * time.Second)
		k.renewed(time.Now()) // as a step does
		pass(7 * time.Second)
		renewals, _, _ := k.seen()
		require.Empty(t, renewals)
		pass(4 * time.Second)
		k.stop()
		renewals, _, _ = k.seen()
		require.Equal(t, []time.Duration{18 * time.Second}, renewals)
	})
}

func TestKeeperTriesAgainSoonAndGivesUpBeforeTheLeaseEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keepLease(t.Context(), 0, errors.New("away"))
		pass(27*time.Second - 1)
		require.True(t, k.trusted())
		renewals, _, lost := k.seen()
		require.NoError(t, lost)
		require.GreaterOrEqual(t, len(renewals), 5)
		pass(1) // 27 s: the lease less a tenth
		require.False(t, k.trusted())
		_, _, lost = k.seen()
		require.ErrorContains(t, lost, "could not be renewed")
		k.stop()
	})
}

// The answer to a renewal may be late. It proves a lease from its sending on,
// not from its arrival.
func TestKeeperTrustsFromTheSending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keepLease(t.Context(), 16*time.Second, nil)
		pass(26 * time.Second) // the answer to what was sent at 10 s
		k.stop()
		require.True(t, k.trusted())
		pass(11*time.Second - 1)
		require.True(t, k.trusted())
		pass(1) // 37 s
		require.False(t, k.trusted())
	})
}

func TestKeeperStopsAtOnceForAnotherOwner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keepLease(t.Context(), 0, ErrNotOwner)
		pass(15 * time.Second)
		renewals, _, lost := k.seen()
		require.ErrorIs(t, lost, ErrNotOwner)
		require.Len(t, renewals, 1)
		k.stop()
	})
}

func TestKeeperDoesNotRenewForAHandlerThatIgnoresItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		k := keepLease(ctx, 0, nil)
		pass(11 * time.Second)
		cancel()
		pass(29 * time.Second)
		renewals, stuck, _ := k.seen()
		require.Len(t, renewals, 1)
		require.Zero(t, stuck)
		pass(2 * time.Second)
		_, stuck, _ = k.seen()
		require.Equal(t, 1, stuck)
		k.stop()
	})
}

func TestKeeperIsDoneAfterStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keepLease(t.Context(), 0, nil)
		k.stop()
		k.renewed(time.Now()) // as the release does
		pass(time.Hour)
		renewals, _, lost := k.seen()
		require.Empty(t, renewals)
		require.NoError(t, lost)
	})
}

func TestRepeatComesSoonAndThenWithJitterUntilTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var at []time.Duration
		start := time.Now()
		done := make(chan struct{})
		go func() {
			defer close(done)
			repeat(ctx, 4*time.Hour, func() { at = append(at, time.Since(start)) })
		}()
		time.Sleep(48 * time.Hour)
		cancel()
		<-done
		require.Equal(t, 48*time.Hour, time.Since(start), "Run did not end with its context")
		require.Less(t, at[0], 5*time.Minute)
		distinct := map[time.Duration]bool{}
		for i := 1; i < len(at); i++ {
			pause := at[i] - at[i-1]
			require.GreaterOrEqual(t, pause, 4*time.Hour*9/10)
			require.LessOrEqual(t, pause, 4*time.Hour*11/10)
			distinct[pause] = true
		}
		require.GreaterOrEqual(t, len(at), 11)
		require.Greater(t, len(distinct), 5, "no jitter")
	})
}

func TestSendingIsTheEarliestThatMayHaveLanded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s sending
		first := time.Now()
		s.run()
		time.Sleep(time.Second)
		s.run()
		require.Equal(t, first.Add(time.Second), s.landed(time.Now()), "answered: it was the last run")
		require.Equal(t, first, s.landed(time.Time{}), "found: it may have been the first")
	})
}
