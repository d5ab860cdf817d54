// Package aside runs what users hook in, such as loggers, beside the work: a hook that blocks or panics costs a log line,
// never a renewal or an acknowledgement.
package aside

import (
	"sync"
	"sync/atomic"
	"time"
)

// Runner runs functions one after the other in a goroutine of its own, in the order they were given. Make one with New.
type Runner struct {
	work    chan func()
	stop    chan struct{}
	once    sync.Once
	ended   chan struct{}
	dropped atomic.Int64
}

// New starts a Runner that remembers up to depth functions which wait for their turn. It must be closed.
func New(depth int) *Runner {
	r := &Runner{work: make(chan func(), depth), stop: make(chan struct{}), ended: make(chan struct{})}
	go r.run()
	return r
}

// Do hands f over and never blocks. When too many wait already, or the Runner is closed, f is dropped and counted.
func (r *Runner) Do(f func()) {
	select {
	case <-r.stop:
		r.dropped.Add(1)
		return
	default:
	}
	select {
	case r.work <- f:
	default:
		r.dropped.Add(1)
	}
}

// Dropped returns how many functions were dropped.
func (r *Runner) Dropped() int64 { return r.dropped.Load() }

// Close runs what still waits and ends the Runner. It gives up after the given time, when a function blocks, and reports
// false: the goroutine then ends when that function returns. It may be called again.
func (r *Runner) Close(within time.Duration) bool {
	r.once.Do(func() { close(r.stop) })
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-r.ended:
		return true
	case <-timer.C:
		return false
	}
}

func (r *Runner) run() {
	defer close(r.ended)
	for {
		select {
		case f := <-r.work:
			call(f)
		case <-r.stop:
			for {
				select {
				case f := <-r.work:
					call(f)
				default:
					return
				}
			}
		}
	}
}

// call keeps a panic, and a Goexit, of a hook away from the Runner.
func call(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		f()
	}()
	<-done
}
