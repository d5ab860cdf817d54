package lease

import "time"

// TryNext returns a message that is here and worth starting, and reports false when there is none, or when others wait in
// Next. It does not block. A message that it returns must be released.
func (r *Receiver) TryNext() (*Held, bool) {
	e := r.book.tryTake(r.book.clock.now())
	if e == nil {
		return nil, false
	}
	return &Held{receiver: r, entry: e}, true
}

func (b *book) tryTake(now time.Time) *entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped || len(b.takers) > 0 {
		return nil
	}
	e := b.line.take(b.terms, now)
	if e != nil {
		b.handOutLocked(e, now)
		signal(b.demand)
	}
	return e
}
