package turn

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const bound = 10 * time.Second

func never(t *testing.T) func() {
	return func() { t.Error("the turn was taken away") }
}

// queueUp starts a waiter and returns when it waits; the channel gives its turn, or nil when it left.
func queueUp(ctx context.Context, l *Line, lost func()) <-chan *Turn {
	got := make(chan *Turn, 1)
	go func() {
		t, err := l.Wait(ctx, nil, lost)
		if err != nil {
			t = nil
		}
		got <- t
	}()
	synctest.Wait()
	return got
}

func has[T any](ch <-chan T) bool { return len(ch) > 0 }

func TestFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLine(bound)
		first, err := l.Wait(t.Context(), nil, never(t))
		require.NoError(t, err)
		var order []<-chan *Turn
		for range 5 {
			order = append(order, queueUp(t.Context(), l, never(t)))
		}
		require.Equal(t, 5, l.Waiting())
		owner := first
		for i, next := range order {
			require.False(t, has(next), "waiter %d came before its turn", i)
			owner.Done()
			synctest.Wait()
			owner = <-next
			for _, later := range order[i+1:] {
				require.False(t, has(later), "two owners at once")
			}
		}
		owner.Done()
		require.True(t, l.Free())
	})
}

func TestWaiterLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLine(bound)
		owner, _ := l.Wait(t.Context(), nil, never(t))
		ctx, cancel := context.WithCancel(t.Context())
		gone := queueUp(ctx, l, never(t))
		stays := queueUp(t.Context(), l, never(t))
		cancel()
		synctest.Wait()
		require.Nil(t, <-gone)
		require.Equal(t, 1, l.Waiting())
		owner.Done()
		(<-stays).Done()
		require.True(t, l.Free())
	})
}

func TestNoLongerWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLine(bound)
		owner, _ := l.Wait(t.Context(), nil, never(t))
		gone := make(chan struct{})
		left := make(chan error, 1)
		go func() {
			_, err := l.Wait(t.Context(), gone, never(t))
			left <- err
		}()
		synctest.Wait()
		close(gone)
		require.ErrorIs(t, <-left, ErrGone)
		owner.Done()
		require.True(t, l.Free())
	})
}

func TestCancelledBeforeWaiting(t *testing.T) {
	l := NewLine(bound)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := l.Wait(ctx, nil, never(t))
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, l.Free())
}

// A turn granted at the very moment when its waiter leaves must not be lost.
func TestGrantAndCancelRace(t *testing.T) {
	for range 300 {
		l := NewLine(bound)
		owner, _ := l.Wait(t.Context(), nil, never(t))
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			turn, err := l.Wait(ctx, nil, never(t))
			if err == nil {
				turn.Done()
			}
			left <- err
		}()
		for l.Waiting() == 0 {
		}
		go cancel()
		owner.Done()
		if err := <-left; err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		require.True(t, l.Free())
	}
}

func TestIdleAloneKeepsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLine(bound)
		owner, _ := l.Wait(t.Context(), nil, never(t))
		owner.Leave()
		time.Sleep(100 * bound)
		require.True(t, owner.Enter())
		owner.Done()
	})
}

func TestIdleLosesTurnToWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLine(bound)
		taken := make(chan time.Time, 1)
		owner, _ := l.Wait(t.Context(), nil, func() { taken <- time.Now() })
		owner.Leave()
		idle := time.Now()
		time.Sleep(bound / 2) // alone, and idle all the same
		next := queueUp(t.Context(), l, never(t))
		require.Equal(t, bound, (<-taken).Sub(idle))
		require.False(t, owner.Enter(), "a lost turn cannot be entered")
		synctest.Wait()
		require.False(t, has(next), "the next in line must wait for Done")
		owner.Done()
		(<-next).Done()
	})
}

func TestWorkPostponesLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLine(bound)
		taken := make(chan time.Time, 1)
		owner, _ := l.Wait(t.Context(), nil, func() { taken <- time.Now() })
		next := queueUp(t.Context(), l, never(t))
		time.Sleep(5 * bound) // at work
		owner.Leave()
		time.Sleep(bound - time.Second)
		require.True(t, owner.Enter())
		require.True(t, owner.Enter()) // two RPCs at once
		owner.Leave()
		time.Sleep(2 * bound)
		owner.Leave()
		idle := time.Now()
		require.Equal(t, bound, (<-taken).Sub(idle))
		owner.Done()
		(<-next).Done()
	})
}

// Waiters of little patience, one after the other, do not leave an idle owner its turn for ever.
func TestIdleLosesTurnToShortWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLine(bound)
		taken := make(chan time.Time, 1)
		owner, _ := l.Wait(t.Context(), nil, func() { taken <- time.Now() })
		owner.Leave()
		idle := time.Now()
		for len(taken) == 0 {
			ctx, cancel := context.WithTimeout(t.Context(), bound/4)
			_, err := l.Wait(ctx, nil, never(t))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			cancel()
			require.Less(t, time.Since(idle), 2*bound)
		}
		require.Equal(t, bound, (<-taken).Sub(idle))
		owner.Done()
		require.True(t, l.Free())
	})
}

// The bound is the owner's, not the line's: one that takes over from an owner who lost its turn has its full time.
func TestNextOwnerHasItsFullTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLine(bound)
		var first *Turn
		first, _ = l.Wait(t.Context(), nil, func() { first.Done() })
		first.Leave()
		taken := make(chan time.Time, 1)
		second := queueUp(t.Context(), l, func() { taken <- time.Now() })
		third := queueUp(t.Context(), l, never(t))
		owner := <-second
		owner.Leave()
		idle := time.Now()
		require.Equal(t, bound, (<-taken).Sub(idle))
		owner.Done()
		(<-third).Done()
	})
}
