package turn

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// Line is the line before one database. Make it with NewLine.
type Line struct {
	idleBound time.Duration

	mu      sync.Mutex
	owner   *Turn       // nil: the database is free
	waiting list.List   // of *place, in order of arrival
	timer   *time.Timer // runs lose at the deadline of an idle owner; nil before its first use
}

// place is somebody's place in the line.
type place struct {
	turn    *Turn
	granted chan struct{} // closed when it is the owner
}

// NewLine makes a line in which an owner that has been idle for idleBound loses its turn as soon as somebody waits: waiters
// that are less patient than that, one after the other, would otherwise never get it.
func NewLine(idleBound time.Duration) *Line { return &Line{idleBound: idleBound} }

// ErrGone is what Wait returns when its gone channel was closed.
var ErrGone = errors.New("turn: no longer wanted")

// Wait blocks until it is the caller's turn. It leaves the line when ctx ends, with its error, or when gone (may be
// nil) is closed, with ErrGone. The caller begins at work, as if it had said Enter. lost is called at most once, when
// the turn is taken from an idle owner.
func (l *Line) Wait(ctx context.Context, gone <-chan struct{}, lost func()) (*Turn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t := &Turn{line: l, lost: lost, working: 1}
	l.mu.Lock()
	if l.owner == nil {
		l.owner = t
		l.mu.Unlock()
		return t, nil
	}
	p := &place{turn: t, granted: make(chan struct{})}
	e := l.waiting.PushBack(p)
	l.watchLocked()
	l.mu.Unlock()

	var err error
	select {
	case <-p.granted:
		return t, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-gone:
		err = ErrGone
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owner == t { // granted just now
		l.nextLocked()
	} else {
		l.waiting.Remove(e)
		l.watchLocked()
	}
	return nil, err
}

// Waiting is how many wait.
func (l *Line) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting.Len()
}

// Free tells whether nobody holds or waits for the turn.
func (l *Line) Free() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.owner == nil
}

// nextLocked gives the turn to the first in line.
func (l *Line) nextLocked() {
	l.owner = nil
	if e := l.waiting.Front(); e != nil {
		p := l.waiting.Remove(e).(*place)
		l.owner = p.turn
		close(p.granted)
	}
	l.watchLocked()
}

// watchLocked sets the timer to the moment when the present owner loses its turn if nothing changes.
func (l *Line) watchLocked() {
	o := l.owner
	if o == nil || o.working > 0 || o.taken || l.waiting.Len() == 0 {
		if l.timer != nil {
			l.timer.Stop()
		}
		return
	}
	left := max(0, l.idleBound-time.Since(o.idleSince))
	if l.timer == nil {
		l.timer = time.AfterFunc(left, l.take)
		return
	}
	l.timer.Reset(left)
}

// take takes the turn from an owner whose time is up. The timer may be late: it looks again.
func (l *Line) take() {
	l.mu.Lock()
	o := l.owner
	if o == nil || o.working > 0 || o.taken || l.waiting.Len() == 0 ||
		time.Since(o.idleSince) < l.idleBound {
		l.watchLocked()
		l.mu.Unlock()
		return
	}
	o.taken = true
	l.mu.Unlock()
	o.lost()
}
