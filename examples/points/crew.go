package main

import (
	"context"
	"errors"
	"fmt"
)

// crew is the workers of a run, those that have left included. It is for one goroutine.
type crew struct {
	hire    func() (worker, error)
	members []*member
	gone    chan *member // a worker that left without being told to
}

func newCrew(hire func() (worker, error)) *crew {
	return &crew{hire: hire, gone: make(chan *member, 1)}
}

type member struct {
	worker
	leave context.CancelFunc
	left  chan struct{} // closed when Run has returned
	err   error         // what it returned
}

// start hires one more worker and lets it run until ctx ends or it is told to leave.
func (c *crew) start(ctx context.Context) error {
	w, err := c.hire()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	m := &member{worker: w, leave: cancel, left: make(chan struct{})}
	go func() {
		defer close(m.left)
		if m.err = w.Run(ctx); ctx.Err() == nil {
			select {
			case c.gone <- m:
			default: // one is enough
			}
		}
	}()
	c.members = append(c.members, m)
	return nil
}

// replaceFirst stops the first worker, which leaves behind what it had taken and not begun, and starts another.
func (c *crew) replaceFirst(ctx context.Context) error {
	if err := c.members[0].stop(); err != nil {
		return err
	}
	return c.start(ctx)
}

// stop stops all workers and returns when they have ended.
func (c *crew) stop() error {
	for _, m := range c.members {
		m.leave()
	}
	var errs []error
	for _, m := range c.members {
		errs = append(errs, m.stop())
	}
	return errors.Join(errs...)
}

// stop stops the worker and returns when it has ended.
func (m *member) stop() error {
	m.leave()
	<-m.left
	if m.err != nil {
		return fmt.Errorf("worker: %w", m.err)
	}
	return nil
}

// figures adds up what the workers have met with.
func (c *crew) figures() figures {
	var sum figures
	for _, m := range c.members {
		sum = sum.plus(m.figures())
	}
	return sum
}
