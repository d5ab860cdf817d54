package main

import (
	"slices"
	"sync"
	"time"
)

// recoveries measures how long it takes, after a kill, until the messages are settled that the killed worker had in its
// hands and that the kill has left in the queues.
type recoveries struct {
	mu       sync.Mutex
	waits    map[string]*wait // by id
	troubles int              // freezes and pauses that last
	ended    []recovery
}

// wait is a message whose worker was killed.
type wait struct {
	recovery
	killed time.Time
	left   bool   // it was still in its queue when that was looked into after the kill
	holder string // the worker that has received it last
}

// recovery is what has become of one.
type recovery struct {
	met     fate
	came    time.Duration // until another worker had received it, after the kill
	settled time.Duration // until it was gone from its queue
}

// fate is what a message has met with besides the kill.
type fate int

const (
	undisturbed fate = iota
	disturbed        // its next worker was killed too, or any was frozen, or the emulator paused
	putOff           // its handler had deferred it
)

func newRecoveries() *recoveries { return &recoveries{waits: make(map[string]*wait)} }

// killed says that a worker was killed and what it was at.
func (r *recoveries) killed(at time.Time, worker string, t told) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, w := range r.waits {
		if w.holder == worker || slices.Contains(t.inHand, id) {
			w.disturb()
		}
	}
	for _, id := range t.inHand {
		if r.waits[id] == nil {
			r.waits[id] = &wait{killed: at}
		}
		if w := r.waits[id]; t.deferred[id] {
			w.met = putOff
		} else if r.troubles > 0 {
			w.disturb()
		}
	}
}

func (w *wait) disturb() {
	if w.met == undisturbed {
		w.met = disturbed
	}
}

// came says that a worker has received a message.
func (r *recoveries) came(worker, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.waits[id]; w != nil {
		if w.came == 0 {
			w.came = time.Since(w.killed)
		}
		w.holder = worker
	}
}

// trouble begins a freeze or a pause, and returns what ends it.
func (r *recoveries) trouble() (over func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.troubles++
	for _, w := range r.waits {
		w.disturb()
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.troubles--
	}
}

// look ends the waits for messages that are gone. queued is what the queues have shown in a look that began at the given
// time. One that is gone at the first look was settled by the killed worker's own commit, and is no recovery.
func (r *recoveries) look(began time.Time, queued map[string]bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, w := range r.waits {
		switch {
		case w.killed.After(began):
		case queued[id]:
			w.left = true
		default:
			if w.left {
				w.settled = now.Sub(w.killed)
				r.ended = append(r.ended, w.recovery)
			}
			delete(r.waits, id)
		}
	}
}

// of returns the recoveries that have met with one of the given, or all.
func (r *recoveries) of(met ...fate) recovered {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.ended), func(one recovery) bool { return len(met) > 0 && !slices.Contains(met, one.met) })
}

// recovered are recoveries.
type recovered []recovery

// came returns the median and the longest time until another worker had the message.
func (r recovered) came() (median, longest time.Duration) {
	return spread(r, func(one recovery) time.Duration { return one.came })
}

// settled is the same until the message was settled.
func (r recovered) settled() (median, longest time.Duration) {
	return spread(r, func(one recovery) time.Duration { return one.settled })
}

func spread(r recovered, of func(recovery) time.Duration) (median, longest time.Duration) {
	if len(r) == 0 {
		return 0, 0
	}
	times := make([]time.Duration, len(r))
	for i, one := range r {
		times[i] = of(one)
	}
	slices.Sort(times)
	return times[len(times)/2], times[len(times)-1]
}
