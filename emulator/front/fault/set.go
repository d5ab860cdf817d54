package fault

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// Set holds the rules of a front. The zero Set is ready and has none. Its methods are safe for concurrent use, also
// while calls run; a call that has already passed a rule is not affected by it any more.
type Set struct {
	mu    sync.Mutex
	rules atomic.Pointer[[]*Handle] // replaced, never changed, under mu

	records recordLog
	away    outages
}

// Add puts the rule behind those that are there. It panics if the rule makes no sense (no action, a negative count or
// time, a probability outside 0 to 1, a method with its service's name): that is a mistake of the program.
func (s *Set) Add(r Rule) *Handle {
	if wrong := r.check(); wrong != "" {
		panic(fmt.Sprintf("fault: rule %q: %s", r.Name, wrong))
	}
	h := newHandle(s, r.withDefaults())
	s.mu.Lock()
	defer s.mu.Unlock()
	rules := append(slices.Clone(s.list()), h)
	s.rules.Store(&rules)
	return h
}

// Empty tells whether there are no rules.
func (s *Set) Empty() bool { return len(s.list()) == 0 }

// Clear removes all rules, lets go whatever they hold, and brings back what is away.
func (s *Set) Clear() {
	for _, h := range s.list() {
		h.Remove()
	}
	s.away.end()
}

// Records are the latest actions applied by any rule, oldest first; at most 10,000 are kept.
func (s *Set) Records() []Record { return s.records.all() }

func (s *Set) list() []*Handle {
	if p := s.rules.Load(); p != nil {
		return *p
	}
	return nil
}

func (s *Set) remove(h *Handle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rules := slices.DeleteFunc(slices.Clone(s.list()), func(o *Handle) bool { return o == h })
	s.rules.Store(&rules)
}
