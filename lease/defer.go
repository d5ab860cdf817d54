package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/duetime"
	"github.com/spanqueue/spanqueue/internal/settle"
	"github.com/spanqueue/spanqueue/queue"
	"google.golang.org/grpc/codes"
)

const (
	// resolveFor bounds the search for the outcome of a deferral whose commit was not answered.
	resolveFor = time.Minute
	// lastLook is how long a deferral goes on after its context has ended.
	lastLook = 500 * time.Millisecond
	// askAgainAfter is the pause before a question that was not answered is asked again.
	askAgainAfter = 10 * time.Millisecond
	// longestDeferral keeps the arithmetic of times from overflowing.
	longestDeferral = 100 * 365 * 24 * time.Hour
	// maxRuns bounds how often the database may abort a deferral.
	maxRuns = 100
)

// Defer sends the message again, due when the longest time that the work can take is over, counted from this call, and
// ends the renewals: the message is out of everybody's reach until then, whatever becomes of this process. The contexts
// that Context gave end with cause ErrDeferralOver after that time, shortly before the message comes due. Message then
// returns the new delivery, which is the one to acknowledge. Called again it begins a new time.
//
// A crash costs the wait until the due time, and the work is then done again: at least once, as with renewals, but at most
// once in that time. It is for work that is much longer than a lease, or that must not depend on renewals.
//
// It is one transaction, guarded as an acknowledgement is, and what became of its commit is looked up when the answer is
// lost. An error means that the message was not deferred and is renewed as before: queue.ErrNotHeld and ErrLost when it was
// gone (the contexts end with ErrLost), ErrInvalid when longest is not positive, over 100 years, or shorter than the
// handler's timeout, ErrLost or ErrDeferralOver when the time is over already. When the outcome could not be learned, which
// its text says, the message is either as before or deferred.
func (h *Held) Defer(ctx context.Context, longest time.Duration) error {
	return h.resend(ctx, "Defer", nil, longest)
}

// Checkpoint does what Defer does and replaces the payload: what the next delivery of the message starts from. A nil
// payload keeps the old one.
func (h *Held) Checkpoint(ctx context.Context, payload []byte, longest time.Duration) error {
	return h.resend(ctx, "Checkpoint", payload, longest)
}

func (h *Held) resend(ctx context.Context, what string, payload []byte, longest time.Duration) error {
	r := h.receiver
	if longest <= 0 || longest > longestDeferral {
		return invalid("the time of %s is %v, it must be positive and at most %v", what, longest, longestDeferral)
	}
	h.resending.Lock()
	defer h.resending.Unlock()
	if limit := cmp.Or(h.limit, r.config.HandlerTimeout); longest < limit {
		return invalid("the time of %s is %v, it must be at least HandlerTimeout, %v: the message would come due while the work goes on",
			what, longest, limit)
	}
	old, err := r.book.owned(h.entry)
	if err != nil {
		return err
	}
	start := r.book.clock.now()
	now, err := r.serverTime(ctx)
	if err != nil {
		return fmt.Errorf("lease: %s of %v: %w", what, old, err)
	}
	end, dueIn := r.book.terms.deferral(start, longest)
	if payload == nil {
		payload = old.Payload
	}
	// Chosen once, outside the transaction, and unique: it is by this time that our own commit is known again.
	out, err := r.queue.Backend().Check(backend.Outgoing{Key: old.Key, Payload: payload, DeliverTime: duetime.Mark(now.Add(dueIn))})
	if err != nil {
		return invalid("%s of %v: %w", what, old, err)
	}
	if err := h.move(ctx, old.Delivery(), out); err != nil {
		if errors.Is(err, queue.ErrNotHeld) {
			r.book.lose(h.entry)
			err = fmt.Errorf("%w: %w", ErrLost, err)
		}
		return fmt.Errorf("lease: %s of %v: %w", what, old, err)
	}
	moved := *old
	moved.Payload, moved.DeliverTime, moved.Lease = out.Payload, out.DeliverTime, queue.Lease{}
	if err := r.book.deferred(h.entry, &moved, end); err != nil {
		return fmt.Errorf("lease: %s of %v is done, but its holder's time was over before the answer came: %w", what, old, err)
	}
	return nil
}

// move takes the old delivery out and puts the new one in, and finds out whether that was done. When ctx ends it goes on
// for a moment, since a commit that is under way may land.
func (h *Held) move(ctx context.Context, old backend.Delivery, moved backend.Outgoing) error {
	lasting, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(lastLook, func() { cancel(context.Cause(ctx)) })
	})
	defer stop()
	q := h.receiver.queue
	tx := settle.Tx{
		Queue:    q.Backend(),
		Delivery: old,
		Tag:      "defer=" + q.Name(),
		Body: func(ctx context.Context, tx backend.Tx) error {
			if err := tx.Send(ctx, moved); err != nil || h.carry == nil {
				return err
			}
			return h.carry(ctx, tx, moved)
		},
		MaxRuns: maxRuns,
		// The lease cannot be renewed once the commit has landed, so the search has to begin well before its end.
		CommitTimeout:  h.receiver.book.terms.length / 4,
		ResolveTimeout: resolveFor,
	}
	v := tx.Run(lasting)
	switch v.Result {
	case settle.Committed:
		return nil
	case settle.Settled:
		return h.receiver.isMoved(lasting, old, moved)
	case settle.Unresolved:
		return fmt.Errorf("it could not be learned whether the commit landed: %w", v.Err)
	}
	return v.Err
}

// serverTime asks for the database's time. Google's client executes a query again and again, for as long as it is let, and
// may be silent for good; so it is asked anew, before the lease's end makes the answer useless.
func (r *Receiver) serverTime(ctx context.Context) (now time.Time, err error) {
	err = r.insist(ctx, time.Now().Add(r.book.terms.length/2), func(ctx context.Context) (err error) {
		now, err = r.queue.ServerTime(ctx)
		return err
	})
	return now, err
}

// insist makes a call until it is answered or refused for good, each time for an eighth of a lease at most, and gives up at
// the given time.
func (r *Receiver) insist(ctx context.Context, giveUp time.Time, call func(context.Context) error) error {
	for {
		try, cancel := context.WithTimeout(ctx, r.book.terms.length/8)
		err := call(try)
		cancel()
		if err == nil || spanner.ErrCode(err) == codes.PermissionDenied || !time.Now().Before(giveUp) || !sleep(ctx, askAgainAfter) {
			return err
		}
	}
}

// isMoved says whether a delivery that is gone was taken out by our own commit: only that one put in a message with that
// due time.
func (r *Receiver) isMoved(ctx context.Context, old backend.Delivery, moved backend.Outgoing) error {
	var presence backend.Presence
	err := r.insist(ctx, time.Now().Add(resolveFor), func(ctx context.Context) (err error) {
		presence, err = r.queue.Backend().Probe(ctx, backend.Delivery{Key: moved.Key, DeliverTime: moved.DeliverTime})
		return err
	})
	switch {
	case spanner.ErrCode(err) == codes.PermissionDenied:
		return nil // it was there when a commit of ours was sent; settling the new delivery will tell
	case err != nil:
		return fmt.Errorf("it could not be learned whether the commit landed: %w", err)
	case presence != backend.Present:
		return fmt.Errorf("%w: key %v, due %v, was settled by somebody else", queue.ErrNotHeld, old.Key, old.DeliverTime)
	}
	return nil
}

// owned returns the message when its holder may still move it.
func (b *book) owned(e *entry) (*queue.Message, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.place != inHand {
		return nil, ErrReleased
	}
	return e.message, e.ended
}

// deferred notes that the message was moved: there is no lease any more, and the time runs until end.
func (b *book) deferred(e *entry, moved *queue.Message, end time.Time) error {
	b.mu.Lock()
	if e.place != inHand {
		b.mu.Unlock()
		return ErrReleased
	}
	b.unindexLocked(e)
	delete(b.fresh, e)
	e.message, e.token, e.deferred = moved, "", end
	e.generation++
	var over ending
	if b.index[deliveryID(moved)] != nil {
		// The commit's outcome was learned so late that the message has come due and is here again, with another entry.
		if e.ended == nil {
			over = b.endLocked(e, ErrDeferralOver)
		}
	} else {
		b.index[deliveryID(moved)] = e
	}
	e.announceLocked()
	b.lookAtLocked(e)
	ended := e.ended
	b.mu.Unlock()
	over.tell()
	return ended
}

// lose notes that the message is gone from the queue.
func (b *book) lose(e *entry) {
	b.mu.Lock()
	if e.place != inHand || e.ended != nil {
		b.mu.Unlock()
		return
	}
	end := b.endLocked(e, ErrLost)
	b.mu.Unlock()
	end.tell()
}
