package front

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
)

// ahead keeps what was read of an answer and not sent yet.
type ahead struct {
	news chan struct{} // holds one; written by whoever reads

	mu       sync.Mutex
	kept     []*spannerpb.PartialResultSet
	unwanted bool
	ended    bool
	err      error  // how it ended
	panicked string // or that
}

var errUnwanted = errors.New("nobody wants the rest of the answer")

// readAhead reads an answer as fast as the emulator gives it and sends it as fast as the client takes it. While an answer
// is under way the emulator holds up every other request of its transaction, so that a client that does not read, or that
// works row by row, would wait for itself, and everybody else for the turn. It returns when both have ended, with read's
// error.
func readAhead(ctx context.Context, read func(ctx context.Context, take func(*spannerpb.PartialResultSet) error) error, send func(*spannerpb.PartialResultSet) error) error {
	a := &ahead{news: make(chan struct{}, 1)}
	var reading sync.WaitGroup
	defer reading.Wait()
	reading.Go(func() {
		defer func() {
			if r := recover(); r != nil {
				a.end(nil, fmt.Sprintf("%v\n%s", r, debug.Stack()))
			}
		}()
		a.end(read(ctx, a.put), "")
	})
	for {
		m, err := a.next()
		if m == nil {
			return err
		}
		if send(m) != nil {
			a.stop()
			return nil
		}
	}
}

func (a *ahead) put(m *spannerpb.PartialResultSet) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unwanted {
		return errUnwanted
	}
	a.kept = append(a.kept, m)
	a.tellLocked()
	return nil
}

func (a *ahead) end(err error, panicked string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended, a.err, a.panicked = true, err, panicked
	a.tellLocked()
}

func (a *ahead) tellLocked() {
	select {
	case a.news <- struct{}{}:
	default: // there is some already
	}
}

func (a *ahead) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept, a.unwanted = nil, true
}

// next waits for the next message. Nil: there is none any more. A panic of the reader goes on here, where the RPC is.
func (a *ahead) next() (*spannerpb.PartialResultSet, error) {
	for ; ; <-a.news {
		if m, ended, err := a.take(); m != nil || ended {
			return m, err
		}
	}
}

func (a *ahead) take() (m *spannerpb.PartialResultSet, ended bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case len(a.kept) > 0:
		m = a.kept[0]
		a.kept[0] = nil
		a.kept = a.kept[1:]
		return m, false, nil
	case a.panicked != "":
		panic(a.panicked)
	}
	return nil, a.ended, a.err
}
