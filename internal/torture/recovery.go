package main

import (
	"slices"
	"sync"
	"time"
)

// recoveries measures, for each kill, how long it takes until the messages are settled that the killed worker had in its
// hands and that the kill has left in the queues.
type recoveries struct {
	mu   sync.Mutex
	open []*recovery
	took []time.Duration
}

type recovery struct {
	killed time.Time
	ids    []string
	left   bool // some were still in the queues when they were looked into after the kill
}

// killed begins a measurement.
func (r *recoveries) killed(at time.Time, ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = append(r.open, &recovery{killed: at, ids: ids})
}

// look ends those whose messages are gone. queued is what the queues have shown in a look that began at the given time.
func (r *recoveries) look(began time.Time, queued map[string]bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = slices.DeleteFunc(r.open, func(one *recovery) bool {
		switch {
		case one.killed.After(began):
			return false
		case slices.ContainsFunc(one.ids, func(id string) bool { return queued[id] }):
			one.left = true
			return false
		case one.left:
			r.took = append(r.took, now.Sub(one.killed))
		}
		return true
	})
}

// result returns how many kills have left messages, and the median and the longest of their times.
func (r *recoveries) result() (n int, median, longest time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.took) == 0 {
		return 0, 0, 0
	}
	sorted := slices.Sorted(slices.Values(r.took))
	return len(sorted), sorted[len(sorted)/2], sorted[len(sorted)-1]
}
