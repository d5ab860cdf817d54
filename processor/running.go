package processor

import (
	"sync"
	"time"

	"github.com/spanqueue/spanqueue/lease"
)

// running knows the handlers that have been started and have not returned.
type running struct {
	mu       sync.Mutex
	next     int
	handlers map[int][]Abandoned
}

func (r *running) start(ds []*delivery) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.handlers == nil {
		r.handlers = make(map[int][]Abandoned)
	}
	r.next++
	for _, d := range ds {
		r.handlers[r.next] = append(r.handlers[r.next], Abandoned{Message: d.message.String(), Since: time.Now()})
	}
	return r.next
}

func (r *running) end(id int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.handlers, id)
}

func (r *running) list() []Abandoned {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Abandoned
	for _, h := range r.handlers {
		all = append(all, h...)
	}
	return all
}

// inFlight knows what the workers hold.
type inFlight struct {
	mu   sync.Mutex
	held map[*lease.Held]struct{}
}

func (f *inFlight) add(h *lease.Held) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held == nil {
		f.held = make(map[*lease.Held]struct{})
	}
	f.held[h] = struct{}{}
}

func (f *inFlight) release(h *lease.Held) {
	f.mu.Lock()
	delete(f.held, h)
	f.mu.Unlock()
	h.Release()
}

// releaseAll lets go of everything, so that nothing of it is renewed any longer.
func (f *inFlight) releaseAll() {
	f.mu.Lock()
	held := f.held
	f.held = nil
	f.mu.Unlock()
	for h := range held {
		h.Release()
	}
}
