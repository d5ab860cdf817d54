package idempotencyhttp

import (
	"context"
	"errors"
	"sync"

	"github.com/spanqueue/spanqueue/idempotency"
)

// errWaited: the first request was still at work when a duplicate's time to
// wait was over, or there were too many that wait.
var errWaited = errors.New("idempotencyhttp: the first request of the operation is still at work")

// gate lets one request of an operation at a time go to the database. The
// database would keep duplicates apart as well, and does so between processes;
// here they wait without holding a transaction, and are counted.
type gate struct {
	maxWaiters int

	mu    sync.Mutex
	lines map[idempotency.Operation]*line
}

// line is the requests of one operation: the one at work and those that wait.
type line struct {
	turn    chan struct{} // holds one value while a request is at work
	members int           // guarded by gate.mu
}

func newGate(maxWaiters int) *gate {
	return &gate{maxWaiters: maxWaiters, lines: map[idempotency.Operation]*line{}}
}

// enter waits for the operation's turn until ctx ends. The caller calls leave
// once if there is no error.
func (g *gate) enter(ctx context.Context, op idempotency.Operation) (leave func(), err error) {
	l, ok := g.join(op)
	if !ok {
		return nil, errWaited
	}
	select {
	case l.turn <- struct{}{}:
		return sync.OnceFunc(func() {
			<-l.turn
			g.part(op, l)
		}), nil
	case <-ctx.Done():
		g.part(op, l)
		return nil, errWaited
	}
}

func (g *gate) join(op idempotency.Operation) (*line, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lines[op]
	if l == nil {
		l = &line{turn: make(chan struct{}, 1)}
		g.lines[op] = l
	}
	if l.members > g.maxWaiters {
		return nil, false
	}
	l.members++
	return l, true
}

func (g *gate) part(op idempotency.Operation, l *line) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l.members--; l.members == 0 {
		delete(g.lines, op)
	}
}
