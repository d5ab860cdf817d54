package idempotency

import (
	"context"
	"fmt"

	"cloud.google.com/go/spanner"
)

// Local runs one local step: f's writes and its result, as encoding/json
// writes it, are one commit. If the operation has passed the step before, f is
// not run and the recorded result returned. f is bound by the rules of Effect.
//
// Errors: what f returned, after which nothing of the step is kept;
// ErrNotOwner; ErrDiverged; ErrTooLarge; ErrUnresolved; ErrInvalid. They should
// be returned to Steps.
func Local[T any](ctx context.Context, run *Run, name string, f func(context.Context, *spanner.ReadWriteTransaction) (T, error)) (T, error) {
	var none T
	e, found, err := run.enter(name, local)
	if err != nil {
		return none, err
	}
	defer run.leave()
	if found {
		return passed[T](run, e)
	}
	if f == nil {
		return none, fmt.Errorf("%w: the function of step %q is nil", ErrInvalid, name)
	}
	n := run.next
	err = run.write(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction, r *record) error {
		v, err := f(ctx, tx)
		if err != nil {
			return err
		}
		text, err := run.encode(name, v)
		if err != nil {
			return err
		}
		r.steps = r.steps.with(n, entry{Name: name, Kind: local, Value: text})
		return nil
	}, func(r *record) bool { return len(r.steps) > n })
	if err != nil {
		return none, err
	}
	return passed[T](run, run.record().steps[n])
}

// Complete runs the last local step: its writes, the result and the end of the
// operation are one commit. Errors are as in Local.
func (run *Run) Complete(ctx context.Context, effect Effect) error {
	return run.end(ctx, completed, effect)
}

func (run *Run) end(ctx context.Context, end state, effect Effect) error {
	if err := run.turn("Complete"); err != nil {
		return err
	}
	defer run.leave()
	if steps := run.record().steps; end == completed && run.next < len(steps) {
		return fmt.Errorf("%w: Complete comes before step %d, which the record has as %q", ErrDiverged, run.next+1, steps[run.next].Name)
	}
	if effect == nil {
		return fmt.Errorf("%w: the effect of Complete is nil", ErrInvalid)
	}
	var full Result
	err := run.write(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction, r *record) error {
		var err error
		if full, err = effect(ctx, tx); err != nil {
			return err
		}
		return run.store.finish(r, end, full)
	}, func(r *record) bool { return r.state.final() })
	if err != nil {
		return err
	}
	receipt := run.record().receipt(run.claim.owner)
	receipt.Body = full.Body // also when it was too large to be kept
	run.receipt = &receipt
	return nil
}
