package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
)

// crew is the worker processes.
type crew struct {
	like    worker // how they work
	hired   int
	workers []*process
	running chan *process           // a worker that begins a run, for whoever looks just then
	failed  context.CancelCauseFunc // told when a worker ends that was not asked to
}

type process struct {
	name  string
	cmd   *exec.Cmd
	input io.Closer
	asked atomic.Bool   // to end
	ended chan struct{} // closed when its output has ended
}

// hire starts one more worker.
func (c *crew) hire() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c.hired++
	p := &process{name: fmt.Sprint("worker ", c.hired), ended: make(chan struct{})}
	p.cmd = exec.Command(self, "-worker", p.name, "-addr", c.like.addr, "-lease", c.like.lease.String(), "-takes", c.like.takes.String())
	p.cmd.Stderr = os.Stderr
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	output, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	c.workers = append(c.workers, p)
	go func() {
		defer close(p.ended)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			select {
			case c.running <- p:
			default:
			}
		}
		if !p.asked.Load() {
			c.failed(fmt.Errorf("%s ended by itself", p.name))
		}
	}()
	return nil
}

// kill ends a worker without a warning.
func (c *crew) kill(p *process) error {
	p.asked.Store(true)
	err := p.cmd.Process.Kill()
	<-p.ended
	_ = p.cmd.Wait() // it was killed, and says so
	for i, w := range c.workers {
		if w == p {
			c.workers = append(c.workers[:i], c.workers[i+1:]...)
			break
		}
	}
	return err
}

// killAll leaves nobody.
func (c *crew) killAll() error {
	for len(c.workers) > 0 {
		if err := c.kill(c.workers[0]); err != nil {
			return err
		}
	}
	return nil
}

// stop asks the workers to finish what they have begun, and waits until they have.
func (c *crew) stop() error {
	var errs []error
	for _, p := range c.workers {
		p.asked.Store(true)
		errs = append(errs, p.input.Close())
	}
	for _, p := range c.workers {
		<-p.ended
		errs = append(errs, p.cmd.Wait())
	}
	c.workers = nil
	return errors.Join(errs...)
}
