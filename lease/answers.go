package lease

import (
	"time"

	"github.com/spanqueue/spanqueue/queue"
)

// answered takes in what became of a call that was sent at the given time. renewals are in the order of its leases; with an
// error there are none.
func (b *book) answered(c *call, sent time.Time, renewals []queue.Renewal, err error) {
	now := b.clock.now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.stats.RenewErrors++
	}
	for i, e := range c.entries {
		if e.place == gone || e.generation != c.generations[i] {
			continue
		}
		e.calls--
		switch {
		case err != nil:
			// Nothing is known: the token may be dead. It is sent again, and the answer tells.
			e.failures++
			e.renewAt = earliest(e.renewAt, now.Add(b.terms.retryAfter(e.failures, random())))
		case renewals[i].Renewed:
			b.renewedLocked(e, renewals[i].Lease.Token, sent, now)
		default:
			e.refused = true
		}
		if e.refused && e.calls == 0 {
			// The service has no new token for us. The message may have been acknowledged, the lease may have ended, or it
			// lives on under a token that an earlier, unseen execution of the query was given. Nothing is ended for it: the
			// bound of the last renewal holds whichever it was.
			e.token = ""
			b.stats.Unusable++
		}
		b.lookAtLocked(e)
	}
	b.serveLocked(now)
}

func (b *book) renewedLocked(e *entry, token string, sent, now time.Time) {
	b.stats.Renewed++
	e.generation++
	e.calls, e.failures, e.refused = 0, 0, false
	e.token = token
	e.answered = now
	if sent.After(e.renewed) {
		e.renewed = sent
	}
	e.renewAt = b.terms.renewAt(e.renewed, random())
	delete(b.fresh, e)
	e.announceLocked()
}
