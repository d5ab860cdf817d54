package idempotency

import (
	"context"
	"fmt"

	"cloud.google.com/go/spanner"
	"github.com/google/uuid"
)

// Claim is one call's claim on an operation. It holds the call's owner token,
// drawn when it is made: by it, a run of the call knows the record that an
// earlier run of the same call left, whose commit landed although its answer
// was lost. So a Claim is made once a call, outside the transaction function.
type Claim struct {
	store *Store
	op    Operation
	fp    Fingerprint
	owner string
}

// Claim prepares a claim for a transaction of the caller's own; Store.Do and
// Store.Steps make theirs. It makes no request. The transaction should have
// TransactionOptions.
func (s *Store) Claim(op Operation, fp Fingerprint) (*Claim, error) {
	if err := op.validate(); err != nil {
		return nil, err
	}
	if fp == (Fingerprint{}) {
		return nil, fmt.Errorf("%w: the fingerprint is empty; FingerprintBytes(nil) is that of an empty payload", ErrInvalid)
	}
	return &Claim{store: s, op: op, fp: fp, owner: uuid.NewString()}, nil
}

// Do runs effect in tx, unless the operation has been done, and buffers its
// receipt: effect and receipt are one commit with whatever else tx does. If it
// has been done, Do returns the receipt and writes nothing.
//
// On any error, the effect's included, tx can no longer commit: pass the error
// on. The errors are those of Store.Do. A Refusal comes back as an error too;
// hand it to Refuse in another transaction to have it kept. When the outcome
// of tx is unknown, ask Resolve.
func (c *Claim) Do(ctx context.Context, tx *spanner.ReadWriteTransaction, effect Effect) (Receipt, error) {
	receipt, _, err := c.run(ctx, tx, completed, effect)
	return receipt, err
}

// Refuse buffers in tx that the operation was refused for good, unless it has
// ended already: then the receipt says how. Errors are as in Do.
func (c *Claim) Refuse(ctx context.Context, tx *spanner.ReadWriteTransaction, r *Refusal) (Receipt, error) {
	receipt, _, err := c.run(ctx, tx, failed, r.effect)
	return receipt, err
}

// Resolve says what became of the operation, by a read outside of any
// transaction: the receipt, whoever's it is, or ErrNoRecord when nothing has
// landed. A commit of unknown outcome may still land after that; running the
// transaction again with the same Claim is safe. Errors otherwise as in Do.
func (c *Claim) Resolve(ctx context.Context) (Receipt, error) {
	r, now, err := c.store.look(ctx, c.op)
	if err != nil {
		return Receipt{}, err
	}
	return answer(c.op, r, c.fp, c.owner, now)
}

// run does what Do and Refuse have in common. wrote says that tx has something
// to commit.
func (c *Claim) run(ctx context.Context, tx *spanner.ReadWriteTransaction, end state, effect Effect) (receipt Receipt, wrote bool, err error) {
	defer func() {
		if err != nil {
			poison(tx, err)
		}
	}()
	if effect == nil {
		return Receipt{}, false, fmt.Errorf("%w: the effect of %v is nil", ErrInvalid, c.op)
	}
	old, now, err := c.store.readToClaim(ctx, tx, c.op)
	if err != nil {
		return Receipt{}, false, err
	}
	v := judge(old, c.fp, c.owner, now)
	if v == ended {
		return old.receipt(c.owner), false, nil
	}
	if err := v.refuse(old, now); err != nil {
		return Receipt{}, false, err
	}
	if v != fresh && len(old.steps) > 0 {
		return Receipt{}, false, fmt.Errorf("%w: %v was begun in steps and has passed %q", ErrDiverged, c.op, old.steps.point())
	}
	result, err := effect(ctx, tx)
	if err != nil {
		return Receipt{}, false, err
	}
	next := c.store.newRecord(c, old)
	if err := c.store.finish(next, end, result); err != nil {
		return Receipt{}, false, err
	}
	// There may be a record to replace: an expired one, or one that an owner
	// left before its first step.
	if err := c.store.buffer(tx, next, old != nil); err != nil {
		return Receipt{}, false, err
	}
	return Receipt{Result: result, Refused: end == failed, BodyDropped: next.bodyDropped}, true, nil
}
