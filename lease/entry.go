package lease

import (
	"context"
	"time"

	"github.com/spanqueue/spanqueue/queue"
)

// place is where an entry is on its way.
type place int

const (
	waiting place = iota // in the list, for a free slot
	inHand               // handed out, not released
	gone                 // dropped or released; nothing is done for it any more
)

// entry is what is known of one delivery. Its fields are guarded by the book's mutex; the methods here only read.
type entry struct {
	message *queue.Message
	place   place
	since   time.Time // when it came into the list

	// The lease. token is empty when there is nothing to renew it with.
	token    string
	received time.Time // when the token came by the stream, less what it was on its way for certain
	renewed  time.Time // send time of the last successful renewal; zero: never
	answered time.Time // when that renewal's answer came
	renewAt  time.Time // when to send the token next

	// Calls under way. A new token starts a new generation; answers to older ones mean nothing.
	generation int
	calls      int
	failures   int  // failed calls since the last success
	refused    bool // a call of this generation had no new token for us; final when calls is 0

	// What its holder has asked for.
	certain  bool      // it must know whether the lease is ours: Confirm or Context was called
	stopped  bool      // Stop was called
	settling bool      // Settling was called
	ended    error     // ErrLost or ErrDeferralOver once the time is over
	deferred time.Time // end of a deferral's work; zero: not deferred
	watches  map[*context.CancelCauseFunc]struct{}
	changed  chan struct{} // closed when the lease was renewed, lost or released; nil when nobody waits
}

// bound is until when the delivery is certainly ours; zero when that is not known.
func (e *entry) bound(t terms) time.Time {
	switch {
	case !e.deferred.IsZero():
		return e.deferred
	case e.renewed.IsZero():
		return time.Time{}
	}
	return t.bound(e.renewed)
}

// renewable says whether the token is to be sent again.
func (e *entry) renewable() bool {
	return e.token != "" && e.place != gone && !e.stopped && e.ended == nil && !e.refused
}

// deadBy is when the lease has certainly ended.
func (e *entry) deadBy(t terms) time.Time {
	if e.renewed.IsZero() {
		return t.deadBy(e.received)
	}
	return t.deadBy(e.answered)
}

// end is when its holder has to be told that its time is over.
func (e *entry) end(t terms) time.Time {
	switch {
	case !e.deferred.IsZero():
		return e.deferred
	case !e.certain:
		return e.deadBy(t)
	case !e.renewed.IsZero():
		return t.bound(e.renewed)
	case e.token == "":
		return e.received // never renewed and nothing to renew with: there is no bound to trust
	}
	return t.deadBy(e.received)
}

// overFor returns why the holder's time is over now, or nil when it is not, or was told before.
func (e *entry) overFor(t terms, now time.Time) error {
	switch {
	case e.ended != nil || now.Before(e.end(t)):
		return nil
	case !e.deferred.IsZero():
		return ErrDeferralOver
	}
	return ErrLost
}

// startUntil is until when a waiting message is worth starting.
func (e *entry) startUntil(t terms) time.Time {
	usable := e.token != "" && !e.refused
	switch {
	case e.renewed.IsZero() && !usable:
		return e.received
	case e.renewed.IsZero():
		return t.startUntil(e.received)
	case !usable:
		return t.bound(e.renewed).Add(-t.enough())
	}
	return t.bound(e.renewed)
}

// dropAt is when a waiting message is dropped: when it is not worth starting and no renewal can change that.
func (e *entry) dropAt(t terms) time.Time {
	if e.renewed.IsZero() && e.token != "" {
		return t.deadBy(e.received)
	}
	return e.startUntil(t)
}

// askAgainFrom is the end that a renewal sent now works against.
func (e *entry) askAgainFrom(t terms) time.Time {
	if e.renewed.IsZero() {
		return t.deadBy(e.received)
	}
	return t.bound(e.renewed)
}

// wakeAt is when the keeper has to look at the entry next; zero means never.
func (e *entry) wakeAt(t terms, maxWait time.Duration) time.Time {
	var at time.Time
	if e.renewable() {
		at = e.renewAt
	}
	switch e.place {
	case waiting:
		at = earliest(at, e.dropAt(t))
		at = earliest(at, e.since.Add(maxWait))
	case inHand:
		if e.ended == nil {
			at = earliest(at, e.end(t))
		}
	}
	return at
}
