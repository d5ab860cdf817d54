package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// crew is the worker processes. Its methods may be called at the same time.
type crew struct {
	job    job // what all of them have in common
	hire   hire
	came   func(worker, id string)
	errOut io.Writer
	gone   chan *process // workers that ended by themselves; one slot

	mu      sync.Mutex
	alive   []*process
	hired   int
	past    figures // of workers that have ended
	stopped bool
}

func newCrew(j job, hire hire, came func(worker, id string), errOut io.Writer) *crew {
	return &crew{job: j, hire: hire, came: came, errOut: errOut, gone: make(chan *process, 1)}
}

// start starts one more worker.
func (c *crew) start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil
	}
	c.hired++
	j := c.job
	j.Name = fmt.Sprintf("w%d", c.hired)
	j.Seed += uint64(c.hired)
	p, err := startProcess(j, c.hire, c.came, c.errOut)
	if err != nil {
		return err
	}
	c.alive = append(c.alive, p)
	go c.await(p)
	return nil
}

// await reports a worker that ended by itself.
func (c *crew) await(p *process) {
	<-p.ended
	c.mu.Lock()
	expected := c.stopped || !slices.Contains(c.alive, p)
	c.mu.Unlock()
	if expected {
		return
	}
	select {
	case c.gone <- p:
	default: // one is enough
	}
}

// pick waits for workers that are at work, and returns one of them; any one when there is none for a while.
func (c *crew) pick(ctx context.Context, dice *rand.Rand) *process {
	for giveUp := time.Now().Add(pickLimit); time.Now().Before(giveUp); {
		if busy := c.some((*process).busy); len(busy) > 0 {
			return busy[dice.IntN(len(busy))]
		}
		if sleep(ctx, time.Millisecond) != nil {
			break
		}
	}
	all := c.some(func(*process) bool { return true })
	if len(all) == 0 {
		return nil
	}
	return all[dice.IntN(len(all))]
}

// pickLimit is how long a worker at work is waited for.
const pickLimit = time.Second

// some returns the workers of which it is true.
func (c *crew) some(of func(*process) bool) []*process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.alive), func(p *process) bool { return !of(p) })
}

// kill kills a worker and returns what it was at.
func (c *crew) kill(p *process) told {
	c.mu.Lock()
	c.alive = slices.DeleteFunc(c.alive, func(o *process) bool { return o == p })
	c.mu.Unlock()
	t := p.kill()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.past = c.past.plus(t.figures)
	return t
}

// figures adds up what all workers have met with, those that have ended included.
func (c *crew) figures() figures {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := c.past
	for _, p := range c.alive {
		sum = sum.plus(p.told().figures)
	}
	return sum
}

// stop stops all workers, at the same time, and returns when they have ended. They finish what they have begun, unless ctx
// has ended: then they are killed.
func (c *crew) stop(ctx context.Context) error {
	c.mu.Lock()
	c.stopped = true
	alive := slices.Clone(c.alive)
	c.mu.Unlock()
	errs := make([]error, len(alive))
	var all sync.WaitGroup
	for i, p := range alive {
		all.Go(func() {
			if ctx.Err() != nil {
				p.kill()
				return
			}
			errs[i] = p.stop()
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// ready waits until all workers run.
func (c *crew) ready(ctx context.Context) error {
	c.mu.Lock()
	alive := slices.Clone(c.alive)
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for _, p := range alive {
		select {
		case <-p.ready:
		case <-p.ended:
			return fmt.Errorf("a worker ended as it started: %w", p.failure())
		case <-ctx.Done():
			return fmt.Errorf("worker %s has not started within %v", p.name, readyLimit)
		}
	}
	return nil
}

// readyLimit is how long workers may take to start.
const readyLimit = 30 * time.Second
