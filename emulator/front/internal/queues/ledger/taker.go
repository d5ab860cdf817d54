package ledger

import "time"

// Taker is the view of one receiver: it is offered every ready message once, and never again one that it refused.
type Taker struct {
	l *Ledger

	// Guarded by l.mu.
	seen    uint64          // the number of the last ready message looked at
	refused map[ID]struct{} // may be ready again for others
}

// NewTaker returns the view of a new receiver. It needs no closing.
func (l *Ledger) NewTaker() *Taker {
	return &Taker{l: l, refused: make(map[ID]struct{})}
}

// Take hands out up to n ready messages, oldest first. Each must then be granted, refused, put back or forgotten.
func (t *Taker) Take(n int) []ID {
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ripenLocked(time.Now())
	var taken []*message
	for i := l.ready.after(t.seen); i < len(l.ready.items) && len(taken) < n; i++ {
		item := l.ready.items[i]
		t.seen = item.seq
		if item.m == nil {
			continue
		}
		if _, no := t.refused[item.m.id]; !no {
			taken = append(taken, item.m)
		}
	}
	ids := make([]ID, len(taken))
	for i, m := range taken { // after the loop: removing may close the holes and move the items
		l.ready.remove(m.seq)
		m.state = stateOffered
		ids[i] = m.id
	}
	return ids
}

// Pending reports whether Take would hand out something.
func (t *Taker) Pending() bool {
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ripenLocked(time.Now())
	for _, item := range l.ready.items[l.ready.after(t.seen):] {
		if item.m == nil {
			continue
		}
		if _, no := t.refused[item.m.id]; !no {
			return true
		}
	}
	return false
}

// Refuse gives an offered message back for others; this taker does not get it again.
func (t *Taker) Refuse(id ID) {
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	t.refused[id] = struct{}{}
	t.l.putBackLocked(id)
}

// PutBack gives an offered message back for everybody.
func (t *Taker) PutBack(id ID) {
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	t.l.putBackLocked(id)
}

func (l *Ledger) putBackLocked(id ID) {
	if m := l.byKey[id.Key]; m != nil && m.id == id && m.state == stateOffered {
		l.readyLocked(m)
	}
}
