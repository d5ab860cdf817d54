package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"time"
)

// hire makes the command of a worker process.
type hire func(job) (*exec.Cmd, error)

// ownWorkers runs this program in the given role.
func ownWorkers(role string) hire {
	return func(j job) (*exec.Cmd, error) {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(j)
		if err != nil {
			return nil, err
		}
		return exec.Command(self, role, string(text)), nil
	}
}

// process is a worker process from the outside.
type process struct {
	name  string
	cmd   *exec.Cmd
	in    io.WriteCloser // its end, which comes with ours, ends the worker
	ready chan struct{}  // closed when its processors run
	ended chan struct{}  // closed when it has ended and all that it has told was read
	err   error          // how it ended; read after ended

	came func(worker, id string) // is told of every message that the worker has received

	mu       sync.Mutex
	handling map[string]int       // handlers at a message
	deferred map[string]time.Time // when they have put off a message
	commits  int                  // under way
	left     []departure          // the latest messages that handlers have left
	figures  figures
	failed   string
}

// departure is a handler's end. What it has led to may be under way for a while yet.
type departure struct {
	id string
	at time.Time
}

// underWay is for how long.
const underWay = 2 * commitTimeout

func newProcess(name string, came func(worker, id string)) *process {
	return &process{
		name:     name,
		ready:    make(chan struct{}),
		ended:    make(chan struct{}),
		came:     came,
		handling: make(map[string]int),
		deferred: make(map[string]time.Time),
	}
}

// startProcess starts a worker. One goroutine starts it and waits for it, on one thread: where there is a parent-death
// signal it is sent when the thread ends that has started the child.
func startProcess(j job, hire hire, came func(worker, id string), errOut io.Writer) (*process, error) {
	cmd, err := hire(j)
	if err != nil {
		return nil, err
	}
	p := newProcess(j.Name, came)
	p.cmd = cmd
	cmd.Stderr = errOut
	cmd.SysProcAttr = childAttributes()
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	started := make(chan error)
	go p.run(out, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start worker %s: %w", j.Name, err)
	}
	return p, nil
}

func (p *process) run(out io.Reader, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	defer close(p.ended)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		p.hear(parseEvent(lines.Text()))
	}
	p.err = p.cmd.Wait()
}

// hear takes in what the worker tells.
func (p *process) hear(e event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e.name {
	case eventReady:
		close(p.ready)
	case eventEnter:
		p.handling[e.text]++
	case eventLeave:
		if p.handling[e.text]--; p.handling[e.text] <= 0 {
			delete(p.handling, e.text)
		}
		now := time.Now()
		p.left = append(slices.DeleteFunc(p.left, func(d departure) bool { return now.Sub(d.at) > underWay }), departure{e.text, now})
	case eventCame:
		p.came(p.name, e.text)
	case eventDeferred:
		p.deferred[e.text] = time.Now()
	case eventCommit:
		p.commits++
	case eventAnswered:
		p.commits--
	case eventFigures:
		var f figures
		if json.Unmarshal([]byte(e.text), &f) == nil { // a line that a kill has cut short is none
			p.figures = f
		}
	case eventFailed:
		p.failed = e.text
	}
}

// told is what a worker was last heard to be at.
type told struct {
	handling int             // messages that handlers are at
	commits  int             // Commits under way
	inHand   []string        // the messages: those, and what may be under way
	deferred map[string]bool // those of them that are due later only, since their handler has said so
	figures  figures
}

// busy says whether a message is in a handler or a Commit under way.
func (t told) busy() bool { return t.handling > 0 || t.commits > 0 }

func (p *process) told() told {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := told{handling: len(p.handling), commits: p.commits, inHand: slices.Collect(maps.Keys(p.handling)),
		deferred: make(map[string]bool), figures: p.figures}
	for _, d := range p.left {
		t.inHand = append(t.inHand, d.id)
	}
	for _, id := range t.inHand {
		if time.Since(p.deferred[id]) < callTimeout {
			t.deferred[id] = true
		}
	}
	return t
}

func (p *process) busy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.handling) > 0 || p.commits > 0
}

// kill kills the worker as the kernel kills: it is told nothing. It returns what it was killed at.
func (p *process) kill() told {
	_ = p.cmd.Process.Kill() // fails only when it has ended
	<-p.ended
	return p.told()
}

// stopLimit is how long a worker may take to stop.
const stopLimit = drainTimeout + 10*time.Second

// stop tells the worker to stop and returns when it has ended, with an error if it did not end well.
func (p *process) stop() error {
	_, _ = io.WriteString(p.in, stopLine+"\n") // fails only when it has ended, and then that is seen below
	select {
	case <-p.ended:
	case <-time.After(stopLimit):
		p.kill()
		return fmt.Errorf("worker %s did not stop within %v", p.name, stopLimit)
	}
	return p.failure()
}

// failure says how the worker has failed, if it has. It is called after ended.
func (p *process) failure() error {
	if p.err == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Errorf("worker %s: %w: %s", p.name, p.err, p.failed)
}
