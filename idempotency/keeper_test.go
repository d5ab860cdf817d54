package idempotency

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// kept runs a keeper with a lease of 30 s under a fake clock. renew answers
// after the given time with the given error.
func kept(t *testing.T, ctx context.Context, took time.Duration, answer func() error) (k *keeper, lost *error, renewals *[]time.Duration) {
	t.Helper()
	start := time.Now()
	lost, renewals = new(error), new([]time.Duration)
	k = &keeper{
		lease: 30 * time.Second,
		lost:  func(err error) { *lost = errors.Join(*lost, err) },
		stuck: func() {},
	}
	k.renew = func(context.Context) error {
		sent := time.Now()
		*renewals = append(*renewals, sent.Sub(start))
		time.Sleep(took)
		err := answer()
		if err == nil {
			k.renewed(sent)
		}
		return err
	}
	k.start(ctx, start)
	return k, lost, renewals
}

func TestKeeperRenewsAtAThirdFromTheTimeOfSending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, lost, renewals := kept(t, t.Context(), 2*time.Second, func() error { return nil })
		time.Sleep(35 * time.Second)
		k.stop()
		require.Equal(t, []time.Duration{10 * time.Second, 20 * time.Second, 30 * time.Second}, *renewals)
		require.NoError(t, *lost)
	})
}

func TestKeeperLetsStepsRenew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, _, renewals := kept(t, t.Context(), 0, func() error { return nil })
		time.Sleep(8 * time.Second)
		k.renewed(time.Now()) // as a step does
		time.Sleep(7 * time.Second)
		require.Empty(t, *renewals)
		time.Sleep(4 * time.Second)
		k.stop()
		require.Equal(t, []time.Duration{18 * time.Second}, *renewals)
	})
}

func TestKeeperTriesAgainSoonAndGivesUpBeforeTheLeaseEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		k, lost, renewals := kept(t, t.Context(), 0, func() error { return errors.New("away") })
		time.Sleep(26 * time.Second)
		require.True(t, k.trusted())
		require.NoError(t, *lost)
		require.GreaterOrEqual(t, len(*renewals), 5)
		time.Sleep(time.Second) // 27 s: the lease less a tenth
		synctest.Wait()
		require.False(t, k.trusted())
		require.ErrorContains(t, *lost, "could not be renewed")
		require.Equal(t, 27*time.Second, time.Since(start))
		k.stop()
	})
}

// The answer to a renewal may be late. It proves a lease from its sending on,
// not from its arrival.
func TestKeeperTrustsFromTheSending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, _, _ := kept(t, t.Context(), 16*time.Second, func() error { return nil })
		time.Sleep(26*time.Second + 1) // the renewal sent at 10 s has been answered
		require.Equal(t, 10*time.Second+27*time.Second-26*time.Second-1, time.Until(k.until))
		k.stop()
	})
}

func TestKeeperStopsAtOnceForAnotherOwner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, lost, renewals := kept(t, t.Context(), 0, func() error { return ErrNotOwner })
		time.Sleep(15 * time.Second)
		require.ErrorIs(t, *lost, ErrNotOwner)
		require.Len(t, *renewals, 1)
		k.stop()
	})
}

func TestKeeperDoesNotRenewForAHandlerThatIgnoresItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		k, _, renewals := kept(t, ctx, 0, func() error { return nil })
		stuck := 0
		k.stuck = func() { stuck++ }
		time.Sleep(11 * time.Second)
		cancel()
		time.Sleep(29 * time.Second)
		require.Len(t, *renewals, 1)
		require.Zero(t, stuck)
		time.Sleep(2 * time.Second)
		require.Equal(t, 1, stuck)
		k.stop()
	})
}

func TestKeeperIsDoneAfterStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, lost, renewals := kept(t, t.Context(), 0, func() error { return nil })
		k.stop()
		k.renewed(time.Now()) // as the release does
		time.Sleep(time.Hour)
		require.Empty(t, *renewals)
		require.NoError(t, *lost)
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
