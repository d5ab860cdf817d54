package lease

import (
	"context"
	"time"
)

// taker is a Next that waits.
type taker struct {
	ready chan struct{} // closed when entry is set, or when there will be none
	entry *entry        // guarded by the book's mutex
}

// take takes the next message that is worth starting, and waits for one.
func (b *book) take(ctx context.Context) (*entry, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	now := b.clock.now()
	b.mu.Lock()
	if b.stopped {
		b.mu.Unlock()
		return nil, ErrStopped
	}
	t := &taker{ready: make(chan struct{})}
	b.takers = append(b.takers, t)
	b.serveLocked(now)
	b.checkStreamLocked(now)
	signal(b.demand)
	b.mu.Unlock()

	select {
	case <-t.ready:
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case t.entry == nil && b.stopped:
		return nil, ErrStopped
	case ctx.Err() != nil:
		b.leaveLocked(t)
		return nil, context.Cause(ctx)
	}
	return t.entry, nil
}

// leaveLocked ends a taker that wants nothing any more, and puts back what it was given.
func (b *book) leaveLocked(t *taker) {
	for i, other := range b.takers {
		if other == t {
			b.takers = append(b.takers[:i:i], b.takers[i+1:]...)
			break
		}
	}
	e := t.entry
	if e == nil || e.place != inHand {
		return
	}
	b.held--
	b.stats.HandedOut--
	if b.stopped {
		b.letGoLocked(e)
		signal(b.wake)
		return
	}
	e.place = waiting
	b.line.pushFront(e)
	b.lookAtLocked(e)
	b.serveLocked(b.clock.now())
}

// serveLocked hands out what is worth starting to those who wait.
func (b *book) serveLocked(now time.Time) {
	for len(b.takers) > 0 {
		e := b.line.take(b.terms, now)
		if e == nil {
			return
		}
		t := b.takers[0]
		b.takers = b.takers[1:]
		b.handOutLocked(e, now)
		t.entry = e
		close(t.ready)
	}
}

// handOutLocked notes that the entry is in somebody's hand.
func (b *book) handOutLocked(e *entry, now time.Time) {
	e.place = inHand
	b.held++
	b.stats.HandedOut++
	if b.begun.IsZero() {
		b.begun = now
	}
	b.lookAtLocked(e)
}

// release forgets a message that was handed out. It may be called again.
func (b *book) release(e *entry) {
	now := b.clock.now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.place != inHand {
		return
	}
	b.held--
	b.freed.add(now)
	b.stuck = false
	b.forgetLocked(e)
	signal(b.demand)
	if b.stopped && b.held == 0 {
		signal(b.wake)
	}
}
