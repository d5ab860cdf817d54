package fault

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Handle is a rule that was added to a Set. Its methods are safe for concurrent use.
type Handle struct {
	set  *Set
	rule Rule
	let  chan struct{} // closed by Release and Remove

	mu      sync.Mutex
	matched int
	taken   int              // decisions to apply
	applied int              // actions applied; behind taken while a reply is on its way
	asked   map[decision]int // decisions by chance so far
	over    bool             // released or removed
	changed chan struct{}    // closed and replaced whenever the action is applied
	records []Record
}

func newHandle(s *Set, r Rule) *Handle {
	return &Handle{
		set:     s,
		rule:    r,
		let:     make(chan struct{}),
		asked:   make(map[decision]int),
		changed: make(chan struct{}),
	}
}

// Applied is how often the action has been applied.
func (h *Handle) Applied() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.applied
}

// Matched is how many calls the rule was about, those passed over by Nth, Times and Probability included.
func (h *Handle) Matched() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.matched
}

// Wait blocks until the action has been applied, and returns nil, or until ctx ends, and returns its error. An action
// on the answer (After, HoldReply, Drop ...) counts as applied when the call has been forwarded and has come back, a
// Hold or a Delay when the call has arrived there.
func (h *Handle) Wait(ctx context.Context) error { return h.WaitN(ctx, 1) }

// WaitN is Wait for the n-th time.
func (h *Handle) WaitN(ctx context.Context, n int) error {
	for {
		h.mu.Lock()
		applied, changed := h.applied, h.changed
		h.mu.Unlock()
		if applied >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Release lets go what the rule holds. The rule is over: it is applied to nothing more. Calling it again does nothing.
func (h *Handle) Release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.over {
		h.over = true
		close(h.let)
	}
}

// Remove takes the rule out of its Set and lets go what it holds. Its records and counts stay readable.
func (h *Handle) Remove() {
	h.set.remove(h)
	h.Release()
}

// Records are the latest times that the action was applied, oldest first; at most 10,000 are kept.
func (h *Handle) Records() []Record {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.records)
}

// decide counts the call if the rule is about it, and tells whether to apply the action, and as the how manieth match.
func (h *Handle) decide(c Call) (n int, apply bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over || !h.rule.matches(c) {
		return 0, false
	}
	h.matched++
	switch {
	case h.matched < h.rule.Nth:
		return h.matched, false
	case h.rule.Times > 0 && h.taken >= h.rule.Times:
		return h.matched, false
	case h.rule.Probability > 0 && !h.chanceLocked(c):
		return h.matched, false
	}
	h.taken++
	return h.matched, true
}

// record notes that the action was applied to the n-th match and wakes who waits for it.
func (h *Handle) record(c Call, n int) {
	r := Record{
		At: time.Now(), Rule: h.rule.Name, Action: h.rule.Do.String(), N: n,
		Method: c.Method, Database: c.Database, SQL: c.SQL, Tag: c.Tag,
	}
	h.set.records.add(r)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.applied++
	h.records = appendBounded(h.records, r)
	close(h.changed)
	h.changed = make(chan struct{})
}

// held blocks until the rule is released.
func (h *Handle) held(ctx context.Context) error {
	select {
	case <-h.let:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}
