package main

import (
	"context"
	"sync"
	"time"
)

const (
	// lookEvery is how often the queues are looked into.
	lookEvery = 50 * time.Millisecond
	// allowedBacklog is how many messages there may be in all queues: more would measure the emulator, which gets slower with each.
	allowedBacklog = 499
)

// maxBacklog is how many messages there are in each queue at most. Batches take more at a time.
var maxBacklog = map[string]int{txQueue: 100, batchQueue: 280, callQueue: 100}

// room is how many messages may be sent to a queue, so that its backlog stays within the bound.
type room struct {
	bound int

	mu      sync.Mutex
	free    int
	allowed int           // to be sent, so far
	known   int           // of those, how many are known to have been sent
	changed chan struct{} // closed and replaced by each look
}

func newRoom(bound int) *room { return &room{bound: bound, changed: make(chan struct{})} }

// take waits until n messages may be sent. It reports false when ctx ended first.
func (r *room) take(ctx context.Context, n int) bool {
	for ctx.Err() == nil {
		r.mu.Lock()
		if r.free >= n {
			r.free -= n
			r.allowed += n
			r.mu.Unlock()
			return true
		}
		changed := r.changed
		r.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return false
}

// sent says that n of the messages that were allowed are known to have been sent.
func (r *room) sent(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known += n
}

// look begins a look at the queues, and returns what to call with the backlog that it has shown. What was not known to
// have been sent when the look began may have come too late to be seen, and is counted besides.
func (r *room) look() (seen func(backlog int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.known
	return func(backlog int) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.free = r.bound - backlog - (r.allowed - known)
		close(r.changed)
		r.changed = make(chan struct{})
	}
}
