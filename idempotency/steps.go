package idempotency

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
)

// Steps runs an operation that does not fit into one transaction. The claim is
// a commit of its own; then f runs local steps (Local) and outside calls
// (Outside), each a recovery point, and ends with Run.Complete. After a crash
// or a passing error a later call runs f again: what has passed is not done
// again but returns what was recorded. If the operation has ended, Steps
// returns its receipt and does not run f.
//
// f must run the same steps in the same order each time; between them it
// should only compute. The lease is renewed while f runs. f's context ends with
// ctx, at Config.HandlerTimeout, or with cause ErrNotOwner when the lease is
// lost. Steps waits for f and then gives the operation up: at once after an
// error, so that the next call need not wait for the lease to end.
//
// Errors: what f returned, with the receipt if f had completed, but a Refusal
// ends the operation with a receipt; ErrMismatch; ErrInProgress, with
// RetryAfter; ErrUncertain, when a step has to be reconciled and could not;
// ErrNotOwner, when another call has taken the operation over; ErrUnresolved;
// ErrInvalid; otherwise what the database said.
func (s *Store) Steps(ctx context.Context, op Operation, fp Fingerprint, f func(ctx context.Context, run *Run) error) (Receipt, error) {
	claim, err := s.Claim(op, fp)
	if err != nil {
		return Receipt{}, err
	}
	if f == nil {
		return Receipt{}, fmt.Errorf("%w: the function of %v is nil", ErrInvalid, op)
	}
	receipt, err := s.steps(ctx, claim, f)
	s.figures.called(ctx, op, receipt, err)
	if err != nil {
		return receipt, err
	}
	return s.present(ctx, op, receipt)
}

func (s *Store) steps(ctx context.Context, c *Claim, f func(context.Context, *Run) error) (Receipt, error) {
	b, err := s.begin(ctx, c)
	if err != nil {
		return Receipt{}, err
	}
	if b.v == ended {
		return b.rec.receipt(c.owner), nil
	}
	if b.v == abandoned || b.v == unsure {
		s.figures.tookOver(ctx, c.op)
	}
	run := &Run{store: s, claim: c, rec: b.rec, began: b.v == fresh}
	return run.execute(ctx, b.sent, f)
}

// beginning is what came of a claim: the record as it stands now, what was
// found when it was claimed, and when the claim was sent, or earlier.
type beginning struct {
	rec  *record
	v    verdict
	sent time.Time
}

// begin claims the operation in a commit of its own.
func (s *Store) begin(ctx context.Context, c *Claim) (beginning, error) {
	var b beginning
	var found verdict // by the last run that wrote
	var sent sending
	at, err := s.settle(ctx, change{
		op:  c.op,
		tag: "spanqueue-claim",
		apply: func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			sent.run()
			r, now, err := s.readToClaim(ctx, tx, c.op)
			if err != nil {
				return err
			}
			b.rec, b.v = r, judge(r, c.fp, c.owner, now)
			switch b.v {
			case ours:
				b.v = found // what an earlier run of this claim found
				return errNothingToWrite
			case ended:
				return errNothingToWrite
			case fresh:
				found = fresh
				b.rec = s.newRecord(c, r)
				return s.buffer(tx, b.rec, r != nil)
			case abandoned, unsure:
				found = b.v
				s.own(r, c.owner)
				return s.buffer(tx, r, true)
			default:
				return b.v.refuse(r, now)
			}
		},
		landed: func(r *record, now time.Time) (bool, error) {
			switch v := judge(r, c.fp, c.owner, now); v {
			case ours:
				b.rec, b.v = r, found
				return true, nil
			case ended:
				b.rec, b.v = r, v
				return true, nil
			case fresh, abandoned, unsure:
				return false, nil
			default:
				return false, v.refuse(r, now)
			}
		},
	})
	b.sent = sent.landed(at)
	return b, err
}

// execute runs f under the lease and deals with how it ended.
func (run *Run) execute(ctx context.Context, sent time.Time, f func(context.Context, *Run) error) (Receipt, error) {
	s := run.store
	outer := ctx
	ctx, done := context.WithTimeoutCause(ctx, s.cfg.HandlerTimeout, errHandlerTimeout)
	defer done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	run.keeper = &keeper{
		lease: s.cfg.Lease,
		renew: run.renew,
		lost: func(err error) {
			if !errors.Is(err, ErrNotOwner) {
				err = fmt.Errorf("%w: %v, %w", ErrNotOwner, run.claim.op, err)
			}
			cancel(err)
		},
		stuck: func() {
			s.cfg.Logger.WarnContext(ctx, "idempotency: a handler ignores the end of its context; its lease is no longer renewed",
				"operation", run.claim.op, "cause", context.Cause(ctx))
		},
	}
	run.keeper.start(ctx, sent)
	returned := false
	defer func() {
		if !returned { // a panic or Goexit goes on after this
			run.keeper.stop()
			run.release(outer)
		}
	}()
	err := withCause(ctx, f(ctx, run))
	returned = true
	run.keeper.stop()
	return run.close(outer, err)
}

// close ends the run after its function has returned err.
func (run *Run) close(ctx context.Context, err error) (Receipt, error) {
	var refusal *Refusal
	switch {
	case run.receipt != nil:
		return *run.receipt, err
	case errors.As(err, &refusal):
		if err := run.end(ctx, failed, refusal.effect); err != nil {
			run.release(ctx)
			return Receipt{}, err
		}
		return *run.receipt, nil
	case err == nil:
		err = fmt.Errorf("%w: the function of %v returned without Complete and without an error", ErrInvalid, run.claim.op)
	}
	run.release(ctx)
	return Receipt{}, err
}

// renew writes the record as it is: its lease starts anew.
func (run *Run) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, run.store.cfg.Lease/3)
	defer cancel()
	return run.write(ctx, func(context.Context, *spanner.ReadWriteTransaction, *record) error { return nil },
		func(*record) bool { return false })
}

// release gives the operation up, so that the next call may go on at once. The
// record stays, with fingerprint and recovery point; only when this run made
// it, and nothing has been done under it, it goes. A release that fails costs
// the others the rest of the lease.
func (run *Run) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
	defer cancel()
	err := run.write(ctx, func(_ context.Context, _ *spanner.ReadWriteTransaction, r *record) error {
		if r.state.final() {
			return errNothingToWrite
		}
		if run.began && !run.called && len(r.steps) == 0 {
			return errGone
		}
		r.owner = ""
		return nil
	}, func(*record) bool { return false })
	if err != nil && !errors.Is(err, ErrNotOwner) {
		run.store.cfg.Logger.WarnContext(ctx, "idempotency: could not give an operation up; others wait for its lease to end",
			"operation", run.claim.op, "error", err)
	}
}
