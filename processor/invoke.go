package processor

import (
	"context"
	"errors"
	"runtime/debug"
	"runtime/pprof"
	"time"

	"cloud.google.com/go/spanner"
	"google.golang.org/grpc/codes"
)

// ignoreGrace is how long a handler may take to return after its context has ended.
const ignoreGrace = time.Second

// errIgnoredContext says that a handler was given up.
var errIgnoredContext = errors.New("processor: the handler did not return within 1s of the end of its context, and was given up; " +
	"it may still be running: a goroutine profile shows where, under the label spanqueue_message")

// errAborted says why a handler that has returned nil, though late, has not done its work.
var errAborted = errors.New("processor: the handler's transaction was not committed, and it had no more time to run again")

// endedError is a handler's failure to finish before its context ended.
type endedError struct {
	cause error // the context's cause
	err   error // what the handler returned; errIgnoredContext when it did not return
}

func (e *endedError) Error() string   { return e.cause.Error() + ": " + e.err.Error() }
func (e *endedError) Unwrap() []error { return []error{e.cause, e.err} }

// caller calls the handler for deliveries: once, or once for each run of their transaction.
type caller struct {
	processor  *Processor
	deliveries []*delivery
	over       error // why a run was the last one: the handler has outlived its time, or our stop's
}

func (p *Processor) caller(ds []*delivery) *caller { return &caller{processor: p, deliveries: ds} }

// call runs the handler once, in a goroutine of its own, and waits for it, or for its context's end and a grace. Inside a
// transaction ctx is the transaction function's context: the handler's is a child of it, so that Google's client refuses
// to nest.
//
// When the database has aborted the transaction of a handler that did not end in its time, the function is run again, and
// the handler is not: a handler that is too slow for a transaction, or waits for its context's end whatever its statements
// answer, would have a slot for MaxRuns times its timeout.
func (c *caller) call(ctx context.Context, f func(context.Context) error) error {
	if c.over != nil {
		return c.over
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := c.run(ctx, cancel, f)
	if cause := context.Cause(ctx); cause == ErrHandlerTimeout || cause == ErrDrainTimeout {
		c.over = err
		if err == nil { // it may still commit, if it can
			c.over = &endedError{cause, errAborted}
		}
	}
	return err
}

func (c *caller) run(ctx context.Context, cancel context.CancelCauseFunc, f func(context.Context) error) error {
	p, ds := c.processor, c.deliveries
	timeout := time.AfterFunc(ds[0].policy.HandlerTimeout, func() {
		for _, d := range ds {
			d.held.Stop() // a handler that has outrun its time keeps no message
		}
		cancel(ErrHandlerTimeout)
	})
	defer timeout.Stop()
	stop := context.AfterFunc(p.handlers, func() { cancel(context.Cause(p.handlers)) })
	defer stop()

	returned := make(chan error, 1)
	running := p.running.start(ds)
	go pprof.Do(ctx, c.labels(), func(ctx context.Context) {
		runHandler(ctx, f, func(err error) {
			p.running.end(running) // first: whoever sees that it has returned must not find it running
			returned <- err
		})
	})
	select {
	case err := <-returned:
		return explain(ctx, err)
	case <-ctx.Done():
	}
	grace := time.NewTimer(ignoreGrace)
	defer grace.Stop()
	select {
	case err := <-returned:
		return explain(ctx, err)
	case <-grace.C:
		return &endedError{context.Cause(ctx), errIgnoredContext}
	}
}

// labels make a handler's stack known in a goroutine profile, in case it does not return.
func (c *caller) labels() pprof.LabelSet {
	p := c.processor
	return pprof.Labels("spanqueue_queue", p.queue.Name(), "spanqueue_handler", p.config.Name,
		"spanqueue_message", c.deliveries[0].message.String())
}

// runHandler runs the handler and reports what it returned. A panic or Goexit is reported as an error and ends the
// goroutine, which is the handler's own. So is an error that panics when it is asked what it is, as a nil pointer in an
// error variable may: better here than in a worker.
func runHandler(ctx context.Context, f func(context.Context) error, returned func(error)) {
	finished := false
	var err error
	defer func() {
		if !finished {
			err = &PanicError{Value: recover(), Stack: debug.Stack()}
		}
		returned(err)
	}()
	if err = f(ctx); err != nil {
		_, _, _ = err.Error(), errors.Is(err, errIgnoredContext), errors.As(err, new(*fate))
	}
	finished = true
}

// apart calls a function of the user's that gets no context, as runHandler does, and waits for it.
func apart(f func() error) error {
	returned := make(chan error, 1)
	go runHandler(context.Background(), func(context.Context) error { return f() }, func(err error) { returned <- err })
	return <-returned
}

// explain tells the end of the handler's context from a failure of its own: the first is when the context has ended and
// the handler says so, in whatever form.
func explain(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	switch spanner.ErrCode(err) {
	case codes.Canceled, codes.DeadlineExceeded:
		return &endedError{context.Cause(ctx), err}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Cause(ctx)) {
		return &endedError{context.Cause(ctx), err}
	}
	return err
}
