package idempotency

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
)

// Do runs effect once for op: claim, effect and receipt are one commit. A
// crash before that commit leaves nothing, after it everything. If op has been
// done, Do returns its receipt and does not run effect.
//
// It blocks until the outcome is known; the end of ctx ends it, but not a
// Commit that is on its way, see Config.CommitTimeout. Errors: what effect
// returned, after which nothing is kept unless it is a Refusal, which Do turns
// into a receipt; ErrMismatch; ErrInProgress and ErrUncertain, when the
// operation was begun with Steps; ErrTooLarge; ErrUnresolved; ErrInvalid;
// otherwise what the database said.
func (s *Store) Do(ctx context.Context, op Operation, fp Fingerprint, effect Effect) (Receipt, error) {
	claim, err := s.Claim(op, fp)
	if err != nil {
		return Receipt{}, err
	}
	if effect == nil {
		return Receipt{}, fmt.Errorf("%w: the effect of %v is nil", ErrInvalid, op)
	}
	receipt, err := s.do(ctx, claim, completed, effect)
	var refusal *Refusal
	if errors.As(err, &refusal) {
		// The effect's writes are gone with its transaction: the refusal is
		// committed alone.
		receipt, err = s.do(ctx, claim, failed, refusal.effect)
	}
	s.figures.called(ctx, op, receipt, err)
	if err != nil {
		return Receipt{}, err
	}
	return s.present(ctx, op, receipt)
}

func (s *Store) do(ctx context.Context, c *Claim, end state, effect Effect) (Receipt, error) {
	var receipt Receipt
	var full Result // of the effect's last run, which is the one that landed
	at, err := s.settle(ctx, change{
		op:      c.op,
		tag:     "spanqueue-do",
		timeout: s.cfg.HandlerTimeout,
		apply: func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			var wrote bool
			var err error
			receipt, wrote, err = c.run(ctx, tx, end, func(ctx context.Context, tx *spanner.ReadWriteTransaction) (Result, error) {
				var err error
				full, err = effect(ctx, tx)
				return full, err
			})
			if err == nil && !wrote {
				return errNothingToWrite
			}
			return err
		},
		landed: func(r *record, now time.Time) (bool, error) {
			switch v := judge(r, c.fp, c.owner, now); v {
			case ended:
				receipt = r.receipt(c.owner)
				return true, nil
			case fresh, ours, abandoned:
				return false, nil
			default:
				return false, v.refuse(r, now)
			}
		},
	})
	if !at.IsZero() {
		receipt.Completed, receipt.Expires = at, at.Add(s.retention)
	}
	if receipt.BodyDropped && !receipt.Replayed {
		receipt.Body = full.Body
	}
	return receipt, err
}
