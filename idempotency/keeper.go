package idempotency

import (
	"context"
	"errors"
	"sync"
	"time"
)

// keeper keeps the lease of one run alive while its function is at work, and
// says when the lease may have ended.
//
// The lease is the database's: it starts at a commit timestamp. Our own clock
// only makes us stop sooner: the lease is trusted from the moment the last
// renewal that succeeded was sent, which lies before its commit, for the
// lease's length less a margin.
type keeper struct {
	lease time.Duration
	// renew renews the lease and calls renewed.
	renew func(context.Context) error
	// lost is called once, when the lease is no longer trusted.
	lost func(error)
	// stuck is called once, when the function is still at work one lease after
	// its context ended.
	stuck func()

	mu      sync.Mutex
	until   time.Time // end of trust, by the monotonic clock
	trust   *time.Timer
	stopped bool

	quit   chan struct{}
	joined chan struct{}
}

// every is the time between renewals: two may fail before the third is late.
func (k *keeper) every() time.Duration { return k.lease / 3 }

// margin covers the way of a write to the database, and the difference between
// two rates of time.
func (k *keeper) margin() time.Duration { return k.lease / 10 }

// start begins to keep a lease whose first write was sent at sent, while the
// function's context ctx lasts.
func (k *keeper) start(ctx context.Context, sent time.Time) {
	k.quit, k.joined = make(chan struct{}), make(chan struct{})
	k.mu.Lock()
	defer k.mu.Unlock()
	k.until = sent.Add(k.lease - k.margin())
	k.trust = time.AfterFunc(time.Until(k.until), func() {
		k.lost(errors.New("its lease could not be renewed in time"))
	})
	go func() {
		defer close(k.joined)
		k.loop(ctx)
		k.watch()
	}()
}

// stop ends the keeping and waits for a renewal that is on its way.
func (k *keeper) stop() {
	close(k.quit)
	<-k.joined
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped = true
	k.trust.Stop()
}

// renewed extends the trust: a write that renewed the lease was sent at sent.
func (k *keeper) renewed(sent time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.until = sent.Add(k.lease - k.margin())
	if !k.stopped {
		k.trust.Reset(time.Until(k.until))
	}
}

// trusted says whether the lease is certain to last at this moment. Unlike the
// timer it cannot be late, also when the process was paused.
func (k *keeper) trusted() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Now().Before(k.until)
}

// due is the time until the next renewal.
func (k *keeper) due() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Until(k.until.Add(k.margin() + k.every() - k.lease))
}

// loop renews until the function's context ends or the function has returned.
func (k *keeper) loop(ctx context.Context) {
	pause := k.due()
	for {
		timer := time.NewTimer(pause)
		select {
		case <-k.quit:
			timer.Stop()
			return
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if pause = k.due(); pause > 0 {
			continue // a step has renewed it meanwhile
		}
		err := k.renew(ctx)
		if errors.Is(err, ErrNotOwner) {
			k.lost(err)
			return
		}
		pause = max(k.due(), k.lease/20) // what failed is tried again soon
	}
}

// watch waits for the function to return after its context has ended.
func (k *keeper) watch() {
	timer := time.NewTimer(k.lease)
	defer timer.Stop()
	select {
	case <-k.quit:
	case <-timer.C:
		k.stuck()
		<-k.quit
	}
}
