package lease

import (
	"context"
	"slices"
	"time"

	"github.com/spanqueue/spanqueue/queue"
)

// maxCall is how many leases are renewed by one call.
const maxCall = 900

// call is one renewal call.
type call struct {
	entries     []*entry
	generations []int
	leases      []queue.Lease
	until       time.Time // no answer after this helps any of them
	first       bool      // it was made because a holder waits for its first renewal
}

// plan is what the keeper has to do at one moment.
type plan struct {
	calls  []*call
	ends   []ending
	letGo  []*queue.Message
	next   time.Time // when to plan again; zero: only when woken
	asking bool      // holders wait for a first renewal, and no call for them could be made yet
	more   bool      // more is due than could be sent
	holds  bool      // something is in hand
	ended  bool      // nothing is left to keep, and nothing will come
}

// ending is something that a holder is told: the end of its contexts.
type ending struct {
	message *queue.Message
	cause   error
	quiet   bool // the holder knows, or does not mind
	watches map[*context.CancelCauseFunc]struct{}
}

// tell ends the contexts. It is called without the book's mutex.
func (e ending) tell() {
	for cancel := range e.watches {
		(*cancel)(e.cause)
	}
}

// allowed is what the keeper may do at one moment.
type allowed struct {
	calls   int           // how many calls
	confirm bool          // a call, beyond these, for holders that wait for their first renewal
	usual   time.Duration // how long calls take
}

// plan works out what is due, and takes it as done: what it returns must be carried out.
func (b *book) plan(now time.Time, may allowed) plan {
	b.mu.Lock()
	defer b.mu.Unlock()
	var p plan
	if b.confirm && may.confirm {
		b.confirm = false
		p.calls = b.callsLocked(b.freshLocked(now), now, may.usual, true)
	}
	if !b.next.IsZero() && !b.next.After(now) {
		p.ends = b.judgeAllLocked(now)
		due, more := b.dueLocked(now, may.calls*maxCall)
		p.calls = append(p.calls, b.callsLocked(due, now, may.usual, false)...)
		p.more = more
		b.next = time.Time{}
		for _, e := range b.index {
			b.next = earliest(b.next, e.wakeAt(b.terms, b.config.MaxWait))
		}
	}
	p.letGo, b.letGo = b.letGo, nil
	p.next = b.next
	p.asking = b.confirm
	p.holds = b.held > 0
	p.ended = b.stopped && b.held == 0
	return p
}

// freshLocked returns all that was never renewed: one call for all that came, whether their holders ask already or will.
func (b *book) freshLocked(now time.Time) []*entry {
	var all []*entry
	for e := range b.fresh {
		if e.renewable() && e.calls == 0 && (e.failures == 0 || !e.renewAt.After(now)) {
			all = append(all, e)
		}
	}
	return all
}

// judgeAllLocked drops what waited too long and returns what holders have to be told.
func (b *book) judgeAllLocked(now time.Time) []ending {
	var ends []ending
	dropped := false
	for _, e := range b.index {
		switch {
		case e.place == inHand:
			if cause := e.overFor(b.terms, now); cause != nil {
				ends = append(ends, b.endLocked(e, cause))
			}
			continue
		case !now.Before(e.dropAt(b.terms)):
			b.stats.Expired++
			b.forgetLocked(e)
		case !now.Before(e.since.Add(b.config.MaxWait)):
			b.letGoLocked(e)
			b.stuck = true
		default:
			continue
		}
		dropped = true
	}
	if dropped {
		b.line.sweep()
		b.checkStreamLocked(now)
		signal(b.demand)
	}
	return ends
}

// endLocked notes that the lease or the deferral of a message in hand is over.
func (b *book) endLocked(e *entry, cause error) ending {
	end := ending{message: e.message, cause: cause, quiet: e.stopped || e.settling, watches: e.watches}
	e.watches = nil
	e.ended = cause
	e.token = ""
	if cause == ErrLost && !end.quiet {
		b.stats.Lost++
	}
	e.announceLocked()
	return end
}

// dueLocked returns what is to be renewed now, the longest overdue first and not more than most, and whether there is more.
// Nothing is returned unless something is due. What is due soon fills the last call.
func (b *book) dueLocked(now time.Time, most int) (due []*entry, more bool) {
	soon := now.Add(b.terms.together())
	overdue := 0
	for _, e := range b.index {
		switch {
		case !e.renewable():
		case !e.renewAt.After(now):
			overdue++
			due = append(due, e)
		case e.calls == 0 && e.failures == 0 && !e.renewAt.After(soon):
			due = append(due, e)
		}
	}
	full := (overdue + maxCall - 1) / maxCall * maxCall
	n := min(len(due), full, most)
	if n < len(due) {
		slices.SortFunc(due, func(a, b *entry) int { return a.renewAt.Compare(b.renewAt) })
	}
	return due[:n], overdue > n
}

func (b *book) callsLocked(due []*entry, now time.Time, usual time.Duration, first bool) []*call {
	var calls []*call
	for len(due) > 0 {
		n := min(len(due), maxCall)
		c := &call{entries: due[:n:n], first: first, until: now.Add(b.terms.length / 20)}
		due = due[n:]
		for _, e := range c.entries {
			c.generations = append(c.generations, e.generation)
			c.leases = append(c.leases, queue.Lease{Token: e.token})
			if until := e.deadBy(b.terms); until.After(c.until) {
				c.until = until
			}
			e.calls++
			e.renewAt = now.Add(b.terms.askAgain(e.askAgainFrom(b.terms).Sub(now), usual))
		}
		b.stats.RenewCalls++
		calls = append(calls, c)
	}
	return calls
}
