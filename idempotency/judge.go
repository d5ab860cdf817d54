package idempotency

import (
	"fmt"
	"time"
)

// verdict is what a call finds when it looks at its operation.
type verdict int

const (
	// fresh: no record, or an expired one. The call may begin.
	fresh verdict = iota
	// ours: an earlier run of this very call holds it; its answer was lost.
	ours
	// abandoned: the owner gave it up, or its lease has ended. The call may
	// take it over.
	abandoned
	// ended: the operation is over and its result can be had.
	ended
	// busy: another call is at work.
	busy
	// unsure: an outside call of unknown outcome has to be reconciled first.
	unsure
	// mismatched: the key was used for another request.
	mismatched
)

// judge decides what the record r, nil if there is none, means to the call
// with the given fingerprint and owner token at the database's time now. A
// look without a claim has no token.
//
// The order matters. Expiry comes first: after it the key is free, also for
// another request. The fingerprint comes before all other answers, so that
// nobody gets a result, or a hint of progress, of a request that is not its.
func judge(r *record, fp Fingerprint, owner string, now time.Time) verdict {
	switch {
	case r == nil || r.expired(now):
		return fresh
	case r.fingerprint != fp:
		return mismatched
	case r.state.final():
		return ended
	case owner != "" && r.owner == owner:
		return ours
	case r.leaseLeft(now) > 0:
		return busy
	case r.state == uncertain:
		return unsure
	default:
		return abandoned
	}
}

// refuse is the error for a verdict that does not let a call begin.
func (v verdict) refuse(r *record, now time.Time) error {
	switch v {
	case mismatched:
		return fmt.Errorf("%w: %v", ErrMismatch, r.op)
	case busy:
		return &inProgressError{op: r.op, after: r.leaseLeft(now)}
	case unsure:
		return fmt.Errorf("%w: %v, after step %q", ErrUncertain, r.op, r.steps.point())
	default:
		return nil
	}
}

// answer is what a look at the record tells a caller who does nothing.
func answer(op Operation, r *record, fp Fingerprint, owner string, now time.Time) (Receipt, error) {
	switch v := judge(r, fp, owner, now); v {
	case ended:
		return r.receipt(owner), nil
	case fresh:
		return Receipt{}, fmt.Errorf("%w: %v", ErrNoRecord, op)
	case ours, abandoned:
		return Receipt{}, &inProgressError{op: op}
	default:
		return Receipt{}, v.refuse(r, now)
	}
}
