package lease

import (
	"context"
	"sync"
	"time"

	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/queue"
)

// Held is a message that was handed out. Its lease is renewed until it is released, stopped or deferred. Its methods may
// be called at the same time.
type Held struct {
	receiver *Receiver
	entry    *entry

	resending sync.Mutex // one Defer or Checkpoint at a time; protects what follows
	carry     func(context.Context, backend.Tx, backend.Outgoing) error
	limit     time.Duration // the longest that this message may be worked on; 0: Config.HandlerTimeout
}

// Carry has f do something more in the transactions of Defer and Checkpoint, after the message was sent again; it is given what
// is sent, and may run several times. It is for the packages of this module.
func (h *Held) Carry(f func(ctx context.Context, tx backend.Tx, resent backend.Outgoing) error) {
	h.resending.Lock()
	defer h.resending.Unlock()
	h.carry = f
}

// Limit has Defer and Checkpoint refuse a time that is shorter than this, the longest that this message may be worked on, in
// place of Config.HandlerTimeout. It is for the packages of this module.
func (h *Held) Limit(longest time.Duration) {
	h.resending.Lock()
	defer h.resending.Unlock()
	h.limit = longest
}

// Number has Message say which attempt this is. It is for the packages of this module.
func (h *Held) Number(attempt int) {
	b := h.receiver.book
	b.mu.Lock()
	defer b.mu.Unlock()
	numbered := *h.entry.message
	numbered.Attempt = attempt
	h.entry.message = &numbered
}

// Message returns the delivery that is held; after Defer or Checkpoint the new one. It is not to be changed.
func (h *Held) Message() *queue.Message {
	b := h.receiver.book
	b.mu.Lock()
	defer b.mu.Unlock()
	return h.entry.message
}

// Bound is until when the message is certainly ours: the moment at which the last successful renewal was sent, plus the
// lease length, minus the margin; after a deferral the end of its time. It is a reading of this process's monotonic
// clock, to be compared with time.Now here and to be shown to nobody. It is zero when the lease was never renewed, since
// what is left of a lease that came with a message is not known, and after Release.
func (h *Held) Bound() time.Time {
	b := h.receiver.book
	b.mu.Lock()
	defer b.mu.Unlock()
	bound := h.entry.bound(b.terms)
	if bound.IsZero() || h.entry.place != inHand {
		return time.Time{}
	}
	return b.clock.usual(bound)
}

// Confirm waits until the lease has been renewed successfully at least once, and returns nil if it is ours. Work that a
// second holder must not do at the same time starts after it. Those who ask at the same time share one call. It returns
// ErrLost when the lease could not be renewed in time, ErrReleased, or the cause of ctx's end.
func (h *Held) Confirm(ctx context.Context) error {
	b := h.receiver.book
	for {
		changed, err := b.confirmed(h.entry)
		if changed == nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Context returns a child of parent that ends with cause ErrLost when the bound passes without a successful renewal, and
// with cause ErrDeferralOver when the time of a deferral is over. The CancelFunc must be called. After Release it is
// nothing but a child of parent.
func (h *Held) Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	b := h.receiver.book
	if ended := b.watch(h.entry, &cancel); ended != nil {
		cancel(ended)
	}
	return ctx, func() {
		b.unwatch(h.entry, &cancel)
		cancel(nil)
	}
}

// Stop ends the renewals but keeps the message in the books, so that it is not handed out here again while whoever works
// on it has not ended: for work that has outrun its time. Contexts go on to the bound. Release is still to be called.
func (h *Held) Stop() {
	b := h.receiver.book
	b.mu.Lock()
	defer b.mu.Unlock()
	h.entry.stopped = true
}

// Settling says that the message is being acknowledged. It is renewed as before, but that its lease turns out to be over
// is no longer reported: a message that was acknowledged cannot be renewed.
func (h *Held) Settling() {
	b := h.receiver.book
	b.mu.Lock()
	defer b.mu.Unlock()
	h.entry.settling = true
}

// Release forgets the message: nothing renews it any more, and it may be handed out again if it comes again. Every Held
// must be released; further calls do nothing.
func (h *Held) Release() { h.receiver.book.release(h.entry) }

// confirmed returns a channel to wait on, or nil and the answer.
func (b *book) confirmed(e *entry) (<-chan struct{}, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case e.place != inHand:
		return nil, ErrReleased
	case e.ended != nil:
		return nil, e.ended
	}
	e.certain = true
	if b.clock.now().Before(e.bound(b.terms)) {
		b.lookAtLocked(e)
		return nil, nil
	}
	if e.changed == nil {
		e.changed = make(chan struct{})
	}
	b.lookAtLocked(e)
	if e.renewed.IsZero() {
		b.confirm = true
		signal(b.wake)
	}
	return e.changed, nil
}

// watch has the cancel function called when the holder's time is over; when it is over already it says so.
func (b *book) watch(e *entry, cancel *context.CancelCauseFunc) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case e.place != inHand:
		return nil
	case e.ended != nil:
		return e.ended
	}
	e.certain = true
	if e.watches == nil {
		e.watches = make(map[*context.CancelCauseFunc]struct{})
	}
	e.watches[cancel] = struct{}{}
	b.lookAtLocked(e)
	return nil
}

func (b *book) unwatch(e *entry, cancel *context.CancelCauseFunc) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(e.watches, cancel)
}
