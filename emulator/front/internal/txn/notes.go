package txn

import "maps"

// Touch remembers names, of queues, that a statement or a mutation of the transaction may change.
func (t *Txn) Touch(names []string) {
	if len(names) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.touched == nil {
		t.touched = make(map[string]struct{})
	}
	for _, n := range names {
		t.touched[n] = struct{}{}
	}
}

// Touched are the names that were remembered, in no order.
func (t *Txn) Touched() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := make([]string, 0, len(t.touched))
	for n := range maps.Keys(t.touched) {
		names = append(names, n)
	}
	return names
}

// Tag is the transaction tag that was noted last.
func (t *Txn) Tag() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tag
}

// NoteTag remembers the transaction tag of a request; requests without one do not take it away.
func (t *Txn) NoteTag(tag string) {
	if tag == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tag = tag
}
