package idempotency

import (
	"context"
	"errors"
	"fmt"

	"cloud.google.com/go/spanner"
)

// Outside is a step that calls something outside the database. The call
// happens at least once, or with AtMostOnce at most once; its result is stored
// before the next step begins, and from then on no call is made.
type Outside[T any] struct {
	// Call makes the call, outside of any transaction, while the lease is
	// renewed. key is a hash of the operation and the step: the same in each
	// run, for the other side to know a repetition by. Call should try once:
	// whoever repeats the operation repeats the call. Its error says what is
	// known: Refuse, the other side said no for good; Uncertain, it cannot be
	// known whether the call took effect; any other, it may be made again.
	Call func(ctx context.Context, key string) (T, error)
	// AtMostOnce is for a side that does not know repetitions by key. The
	// intent is committed before the call, at the price of one commit, and
	// after a crash or any error but a Refusal the call is not made again
	// before Reconcile has said that it did not take effect.
	AtMostOnce bool
	// Reconcile asks the other side what became of the call with the key: its
	// result and true, or false if it did not take effect and cannot any more.
	// An error means that it is still not known. Nil: an operation whose call
	// is uncertain stays so.
	Reconcile func(ctx context.Context, key string) (T, bool, error)
}

// Step runs the step. If the operation has passed it before, no call is made
// and the recorded result returned. Errors: what Call returned; ErrUncertain;
// and those of Local. They should be returned to Steps.
func (o Outside[T]) Step(ctx context.Context, run *Run, name string) (T, error) {
	var none T
	e, found, err := run.enter(name, outside)
	if err != nil {
		return none, err
	}
	defer run.leave()
	if found && !e.Open {
		return passed[T](run, e)
	}
	key := run.claim.op.derivedKey(name)
	if found {
		v, happened, err := o.reconcile(ctx, run, name, key)
		if err != nil {
			return none, err
		}
		if happened {
			return keep(ctx, run, name, v)
		}
	}
	if o.Call == nil {
		return none, fmt.Errorf("%w: Outside.Call of step %q is nil", ErrInvalid, name)
	}
	if o.AtMostOnce && !found {
		if err := run.leaveOpen(ctx, name); err != nil {
			return none, err
		}
	}
	// A pause of the process may have outlasted the lease unnoticed.
	if !run.keeper.trusted() {
		return none, fmt.Errorf("%w: %v, the lease may have ended before step %q", ErrNotOwner, run.claim.op, name)
	}
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	run.called = true
	v, err := o.Call(ctx, key)
	if err == nil {
		return keep(ctx, run, name, v)
	}
	return none, o.failed(ctx, run, name, found, err)
}

// failed decides what the error of a call leaves behind.
func (o Outside[T]) failed(ctx context.Context, run *Run, name string, open bool, err error) error {
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return err
	}
	if !o.AtMostOnce && !errors.Is(err, ErrUncertain) {
		return err
	}
	if !o.AtMostOnce && !open {
		ctx, cancel := run.outlive(ctx)
		defer cancel()
		if err := run.leaveOpen(ctx, name); err != nil {
			return err
		}
	}
	if errors.Is(err, ErrUncertain) {
		return err
	}
	return Uncertain(err)
}

func (o Outside[T]) reconcile(ctx context.Context, run *Run, name, key string) (T, bool, error) {
	var none T
	if o.Reconcile == nil {
		return none, false, fmt.Errorf("%w: %v, step %q, which has no Reconcile", ErrUncertain, run.claim.op, name)
	}
	v, happened, err := o.Reconcile(ctx, key)
	if err != nil {
		return none, false, Uncertain(fmt.Errorf("reconcile step %q of %v: %w", name, run.claim.op, err))
	}
	return v, happened, nil
}

// keep stores the result of a call that was made. It is a fact whatever
// becomes of the caller, so the end of ctx does not keep it from being stored.
func keep[T any](ctx context.Context, run *Run, name string, v T) (T, error) {
	var none T
	text, err := run.encode(name, v)
	if err != nil {
		return none, err
	}
	ctx, cancel := run.outlive(ctx)
	defer cancel()
	n := run.next
	err = run.write(ctx, func(_ context.Context, _ *spanner.ReadWriteTransaction, r *record) error {
		r.steps = r.steps.with(n, entry{Name: name, Kind: outside, Value: text})
		r.state = inProgress
		return nil
	}, func(r *record) bool { return len(r.steps) > n && !r.steps[n].Open })
	if err != nil {
		return none, err
	}
	return passed[T](run, run.record().steps[n])
}

// outlive returns a context for storing what has happened outside. The caller
// may have gone, but not for longer than the lease is it worth trying: after it
// another call finds out for itself.
func (run *Run) outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), max(run.store.cfg.Lease, lookTimeout))
}

// leaveOpen records that the call may have been made.
func (run *Run) leaveOpen(ctx context.Context, name string) error {
	n := run.next
	return run.write(ctx, func(_ context.Context, _ *spanner.ReadWriteTransaction, r *record) error {
		r.steps = r.steps.with(n, entry{Name: name, Kind: outside, Open: true})
		r.state = uncertain
		return nil
	}, func(r *record) bool { return len(r.steps) > n })
}
