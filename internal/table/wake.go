package table

import (
	"runtime"
	"slices"
	"sync"
	"time"
	"weak"
)

// wakeups joins the senders and receivers of this process by the table that they work on, however many Queue values stand
// for it: a send wakes a receiver at once. It is a convenience of one process; across processes there is polling.
type wakeups struct {
	mu       sync.Mutex
	sleepers map[string]map[*sleeper]struct{}
	marks    map[string][]weak.Pointer[marks] // of the Queue values that live
}

// process is the one registry of this process. Nothing but the delay of a pickup depends on it.
var process = newWakeups()

func newWakeups() *wakeups {
	return &wakeups{
		sleepers: make(map[string]map[*sleeper]struct{}),
		marks:    make(map[string][]weak.Pointer[marks]),
	}
}

// know has the marks told of what is sent to the table, for as long as they live.
func (w *wakeups) know(name string, m *marks) {
	p := weak.Make(m)
	w.mu.Lock()
	w.marks[name] = append(w.marks[name], p)
	w.mu.Unlock()
	runtime.AddCleanup(m, func(p weak.Pointer[marks]) { w.forget(name, p) }, p)
}

func (w *wakeups) forget(name string, p weak.Pointer[marks]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := slices.DeleteFunc(w.marks[name], func(o weak.Pointer[marks]) bool { return o == p })
	if w.marks[name] = left; len(left) == 0 {
		delete(w.marks, name)
	}
}

// expect tells them of a message that is on its way, and may lie below one of them.
func (w *wakeups) expect(name string, c cell, visible time.Time) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.marks[name] {
		if m := p.Value(); m != nil {
			m.expect(c, visible, now)
		}
	}
}

// sleeper is one running Receive.
type sleeper struct {
	hub  *wakeups
	name string
	wake chan struct{} // one slot: wake-ups merge

	// guarded by the hub's mutex
	idle  bool
	pause time.Duration // of the present sleep
}

func (w *wakeups) join(name string) *sleeper {
	s := &sleeper{hub: w, name: name, wake: make(chan struct{}, 1)}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sleepers[name] == nil {
		w.sleepers[name] = make(map[*sleeper]struct{})
	}
	w.sleepers[name][s] = struct{}{}
	return s
}

func (s *sleeper) leave() {
	w := s.hub
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.sleepers[s.name], s)
	if len(w.sleepers[s.name]) == 0 {
		delete(w.sleepers, s.name)
	}
}

// sleep waits for a wake-up, for the pause, or until done is closed.
func (s *sleeper) sleep(done <-chan struct{}, pause time.Duration) (woken bool) {
	s.rest(true, pause)
	defer s.rest(false, 0)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-s.wake:
		return true
	case <-timer.C:
	case <-done:
	}
	return false
}

func (s *sleeper) rest(idle bool, pause time.Duration) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.idle, s.pause = idle, pause
}

// sent wakes as many of the receivers that sleep as there are messages. Those that do not sleep look again by themselves;
// they are told too, since the look that they are at may have come too early.
func (w *wakeups) sent(name string, messages int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := range w.sleepers[name] {
		if s.idle {
			if messages == 0 {
				continue
			}
			messages--
			s.idle = false
		}
		s.signal()
	}
}

// soon shortens long pauses: a message has been prepared for a transaction whose commit is out of sight here.
func (w *wakeups) soon(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := range w.sleepers[name] {
		if s.idle && s.pause > 4*shortestPoll {
			s.idle = false
			s.signal()
		}
	}
}

func (s *sleeper) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
