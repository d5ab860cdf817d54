package turn

import "time"

// Turn is the right to lock things in one database. Its methods are safe for concurrent use.
type Turn struct {
	line *Line
	lost func()

	// guarded by line.mu
	working   int // how often Enter was said without Leave
	idleSince time.Time
	taken     bool // the turn was lost while idle
	done      bool
}

// Enter says that the owner is at work, until Leave. It is false when the turn was lost or given back.
func (t *Turn) Enter() bool {
	t.line.mu.Lock()
	defer t.line.mu.Unlock()
	if t.taken || t.done {
		return false
	}
	t.working++
	if t.working == 1 {
		t.line.watchLocked()
	}
	return true
}

// Leave ends what Enter, or Wait, began.
func (t *Turn) Leave() {
	t.line.mu.Lock()
	defer t.line.mu.Unlock()
	t.working--
	if t.working == 0 {
		t.idleSince = time.Now()
		if !t.done {
			t.line.watchLocked()
		}
	}
}

// Done gives the turn to the next in line. Saying it again does nothing.
func (t *Turn) Done() {
	t.line.mu.Lock()
	defer t.line.mu.Unlock()
	if t.done {
		return
	}
	t.done = true
	t.line.nextLocked()
}
