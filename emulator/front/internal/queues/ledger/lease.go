package ledger

import (
	"container/heap"
	"crypto/rand"
	"time"
)

type lease struct {
	token   string
	expires time.Time
	m       *message
}

// Lease is a lease as the receiver gets it.
type Lease struct {
	Token   string
	Expires time.Time
}

// Grant leases an offered message. False: it is not offered any more, because its row is gone.
func (l *Ledger) Grant(id ID) (Lease, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.byKey[id.Key]
	if m == nil || m.id != id || m.state != stateOffered {
		return Lease{}, false
	}
	now := time.Now()
	m.deliveries++
	l.countLocked(m, 1)
	m.lease = &lease{m: m}
	l.extendLocked(m.lease, now)
	heap.Push(&l.waiting, m)
	return Lease{Token: m.lease.token, Expires: m.lease.expires}, true
}

// Release ends a lease whose message never left the front: it is ready again at once and the delivery does not count.
// A token that is not live is no error.
func (l *Ledger) Release(token string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := l.liveLocked(token, time.Now())
	if held == nil || held.m.state != stateWaiting {
		return
	}
	delete(l.byToken, token)
	held.expires = time.Time{}
	l.countLocked(held.m, -1)
	held.m.deliveries--
	heap.Remove(&l.waiting, held.m.heapIndex)
	l.readyLocked(held.m)
}

// countLocked counts the message's last delivery, or takes it back.
func (l *Ledger) countLocked(m *message, by int64) {
	l.counts.All += by
	if m.deliveries > 1 {
		l.counts.Again += by
	}
}

// Live reports whether the token names a lease that runs, of a message that is not known to be gone.
func (l *Ledger) Live(token string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := l.liveLocked(token, time.Now())
	return held != nil && held.m.state != stateGone
}

// Holder returns the message that the token leases; false if the token is dead.
func (l *Ledger) Holder(token string) (ID, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := l.liveLocked(token, time.Now())
	if held == nil {
		return ID{}, false
	}
	return held.m.id, true
}

// Answer tells what became of a token at a renewal.
type Answer int

const (
	// Dead: nobody knows the token, it has been renewed before, or its lease has run out.
	Dead Answer = iota
	// Gone: the lease runs, but its message is gone.
	Gone
	// Renewed: the lease is extended under a new token; the old one is dead.
	Renewed
)

// Renew extends the lease of the token.
func (l *Ledger) Renew(token string) (Lease, Answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	held := l.liveLocked(token, now)
	switch {
	case held == nil:
		return Lease{}, Dead
	case held.m.state != stateWaiting:
		return Lease{}, Gone
	}
	// A new lease, and not a new token in the old one: the old one stands in expiring under its own end.
	delete(l.byToken, token)
	m := held.m
	m.lease = &lease{m: m}
	l.extendLocked(m.lease, now)
	heap.Fix(&l.waiting, m.heapIndex)
	return Lease{Token: m.lease.token, Expires: m.lease.expires}, Renewed
}

// extendLocked starts the lease now and moves its message behind it. The message's place in the heap is the caller's.
func (l *Ledger) extendLocked(n *lease, now time.Time) {
	l.expireLocked(now)
	n.token = rand.Text()
	n.expires = now.Add(l.cfg.LeaseLength)
	l.byToken[n.token] = n
	l.expiring = append(l.expiring, n) // the length is fixed, so the order of starting is the order of ending
	n.m.at = l.nextTick(n.expires).Add(l.rest(n.m.deliveries))
}

func (l *Ledger) liveLocked(token string, now time.Time) *lease {
	held := l.byToken[token]
	if held == nil || !now.Before(held.expires) {
		return nil
	}
	return held
}

// expireLocked drops the tokens whose time is over.
func (l *Ledger) expireLocked(now time.Time) {
	n := 0
	for ; n < len(l.expiring) && !now.Before(l.expiring[n].expires); n++ {
		delete(l.byToken, l.expiring[n].token)
		l.expiring[n] = nil
	}
	l.expiring = l.expiring[n:]
}

// nextTick is the first tick not before t.
func (l *Ledger) nextTick(t time.Time) time.Time {
	since := t.Sub(l.begun)
	return l.begun.Add((since + tick - 1) / tick * tick)
}

// rest is how long a message stays away after the lease of its n-th delivery.
func (l *Ledger) rest(n int) time.Duration {
	if len(l.cfg.Redelivery) == 0 {
		return 0
	}
	return l.cfg.Redelivery[min(n, len(l.cfg.Redelivery))-1]
}
