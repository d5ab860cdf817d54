package queuetest

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Op is a kind of call that can be made to fail.
type Op int

const (
	// OpReceive is the opening of a receive stream.
	OpReceive Op = iota
	// OpRow is the handing over of one received message, which has its lease by then. An error breaks the stream.
	OpRow
	// OpRenew is a renewal call.
	OpRenew
	// OpCommit is a transaction's commit, that of a send included.
	OpCommit
	// OpProbe is a look-up of one delivery.
	OpProbe
	// OpServerTime is the question for the time.
	OpServerTime
)

// Fault is what goes wrong with one call. The zero value: nothing.
type Fault struct {
	// Before is how long the call takes to get to the queue, After how long the answer takes to get back.
	Before, After time.Duration
	// Err is answered instead of the result. The call has no effect, unless Landed.
	Err error
	// Landed lets the call have its effect although Err is answered, or nothing is.
	Landed bool
	// Late lets a commit have its effect only so long after Err was answered. Others do not get at its messages meanwhile.
	Late time.Duration
	// Stall gives no answer until the caller gives up.
	Stall bool
	// Rerun runs a transaction's function again after its commit has had its effect, as Google's client does after some
	// lost answers.
	Rerun bool
}

// SetFault has f asked before each call of the kind what goes wrong with it. n counts the calls of that kind from 1, since
// the queue was made. A nil f ends it.
func (m *Memory) SetFault(op Op, f func(n int) Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults[op] = f
}

// Nth is a fault of the n-th call from now on, counted from 1, and of no other.
func (m *Memory) Nth(op Op, n int, fault Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.calls[op] + n
	m.faults[op] = func(call int) Fault {
		if call == at {
			return fault
		}
		return Fault{}
	}
}

// Always is a fault of every call, for SetFault.
func Always(fault Fault) func(int) Fault { return func(int) Fault { return fault } }

// Code is an error with the given status code, as the database answers it.
func Code(c codes.Code) error { return status.Errorf(c, "queuetest: injected %v", c) }

// faultOf counts the call and returns what goes wrong with it.
func (m *Memory) faultOf(op Op) Fault {
	m.mu.Lock()
	m.calls[op]++
	n, f := m.calls[op], m.faults[op]
	m.mu.Unlock()
	if f == nil {
		return Fault{}
	}
	return f(n)
}

// call makes a call with what goes wrong with it.
func (m *Memory) call(ctx context.Context, op Op, effect func() error) error {
	return m.faultOf(op).run(ctx, effect)
}

func (f Fault) run(ctx context.Context, effect func() error) error {
	if err := sleep(ctx, f.Before); err != nil {
		return err
	}
	if f.Landed || (f.Err == nil && !f.Stall) {
		if err := effect(); err != nil {
			return err
		}
	}
	if f.Stall {
		<-ctx.Done()
		return ended(ctx)
	}
	if err := sleep(ctx, f.After); err != nil {
		return err
	}
	return f.Err
}

// sleep waits, and fails when ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		if ctx.Err() != nil {
			return ended(ctx)
		}
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

// endedError is the end of a context as Google's client reports it: with a status code, and with the context's own error.
type endedError struct{ err error }

func ended(ctx context.Context) error { return &endedError{ctx.Err()} }

func (e *endedError) Error() string { return "queuetest: " + e.err.Error() }
func (e *endedError) Unwrap() error { return e.err }
func (e *endedError) GRPCStatus() *status.Status {
	return status.FromContextError(e.err)
}
