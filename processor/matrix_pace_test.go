package processor_test

import (
	"sync"
	"time"
)

// pace lets as many cells run at the same time as the machine can bear. Most of a cell's time is waiting, so there can be
// many; but leases are short, and on a machine that is busy with other things the cells would take them from each other.
type pace struct {
	most int
	stop chan struct{}
	done sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond
	allowed int
	running int
}

const (
	fewestCells = 6
	// A sleep of lagEvery that takes lagBad longer than that is a sign of too much, one that takes lagGood of room.
	lagEvery = 20 * time.Millisecond
	lagBad   = 40 * time.Millisecond
	lagGood  = 15 * time.Millisecond
)

func newPace(most int) *pace {
	p := &pace{most: most, allowed: most, stop: make(chan struct{})}
	p.changed = sync.NewCond(&p.mu)
	p.done.Go(p.watch)
	return p
}

// watch measures how late this process is, and adapts.
func (p *pace) watch() {
	late := time.Duration(0) // on average, the latest counting most
	timer := time.NewTimer(lagEvery)
	defer timer.Stop()
	for {
		began := time.Now()
		select {
		case <-p.stop:
			return
		case <-timer.C:
		}
		late += (time.Since(began) - lagEvery - late) / 10
		timer.Reset(lagEvery)
		p.mu.Lock()
		switch {
		case late > lagBad && p.allowed > fewestCells:
			p.allowed--
		case late < lagGood && p.allowed < p.most:
			p.allowed++
			p.changed.Broadcast()
		}
		p.mu.Unlock()
	}
}

func (p *pace) enter() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.running >= p.allowed {
		p.changed.Wait()
	}
	p.running++
}

func (p *pace) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
	p.changed.Broadcast()
}

func (p *pace) close() {
	close(p.stop)
	p.done.Wait()
}
