package table

import "time"

// shortestPoll is the first pause after a look that found nothing.
const shortestPoll = 10 * time.Millisecond

// pace plans the looks at a queue that has nothing to claim: the pauses double up to the bound, the upper half of each is
// random, and a message that is known to become visible earlier shortens them. None is ever longer than the bound.
type pace struct {
	bound time.Duration
	next  time.Duration
}

// found begins anew: where one message came, another may.
func (p *pace) found() { p.next = 0 }

// pause returns how long to wait after a look that found nothing. soonest is how long it takes until the next message
// becomes visible, if that is known (not negative). random is from 0 up to 1.
func (p *pace) pause(soonest time.Duration, known bool, random float64) time.Duration {
	p.next = min(max(2*p.next, shortestPoll), p.bound)
	wait := p.next/2 + time.Duration(random*float64(p.next/2))
	if known {
		wait = min(wait, max(soonest, shortestWait))
	}
	return wait
}

// shortestWait is how often a queue is looked at for a message that becomes visible in this moment: clocks are known up
// to a round trip.
const shortestWait = time.Millisecond
