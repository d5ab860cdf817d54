package processor

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/settle"
	"github.com/spanqueue/spanqueue/queue"
)

// OperationFunc says which operation a message asks for. The scope is for the consumer's code to set: a payload that names
// its own scope could use up another's keys. An error dead-letters the message at once.
type OperationFunc func(m *queue.Message) (idempotency.Operation, idempotency.Fingerprint, error)

// Once is a handler whose effect takes place once for an operation, also when several messages ask for it: a producer that
// got no answer has sent again, under another key, or under the same one after the first message was acknowledged. Record,
// effect and acknowledgement are one commit. Otherwise it is as Tx.
//
// A message whose operation has ended is acknowledged without running Effect; its outcome is Duplicate, and the receipt
// stays as it was. While the operation is in progress elsewhere (it was begun in steps) or uncertain, the message is sent
// again for later and no attempt is used. A message that asks for something else under a used key
// (idempotency.ErrMismatch) is dead-lettered at once.
//
// The operations table should remember for longer than a message may be tried again, MaxAttempts times and up to
// Backoff.Max apart; New logs a warning otherwise.
//
// It costs one read more than Tx.
type Once struct {
	Store     *idempotency.Store
	Operation OperationFunc
	// Effect does the work inside the transaction that acknowledges the message, and returns the result to keep.
	// idempotency.Refuse ends the operation with a refusal that is kept.
	Effect func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) (idempotency.Result, error)
	// Replayed, if it is set, is called in Effect's place for a message whose operation had ended, with the receipt, in
	// the transaction that acknowledges the message: to answer it, say.
	Replayed func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message, receipt idempotency.Receipt) error
}

func (h Once) check() error {
	if h.Store == nil || h.Operation == nil || h.Effect == nil {
		return errors.New("Once.Store, Operation and Effect must all be set")
	}
	return nil
}

func (h Once) batch(Config) int { return 1 }

// tune warns when the store forgets sooner than a message gives up: one that comes back after that does the work again.
func (h Once) tune(c *Config) {
	if kept, longest := h.Store.Retention(), longestRetries(*c); kept < longest {
		c.Logger.Warn("processor: operations are remembered for less time than a message may be tried again; "+
			"raise schema.Operations.Retention, or lower MaxAttempts or Backoff.Max",
			"handler", c.Name, "retention", kept, "retries", longest)
	}
}

// longestRedelivery is the longest time after which the service delivers a message again that nobody has acknowledged.
const longestRedelivery = time.Hour

// longestRetries is how long a message may be under way, from its first attempt to its last. Without a limit to the
// attempts there is no such time: it counts for nothing.
func longestRetries(c Config) time.Duration {
	if c.MaxAttempts < 0 || c.Backoff.validate() != nil {
		return 0
	}
	const forEver = time.Duration(math.MaxInt64)
	sum := longestRedelivery
	for n := 1; n < c.MaxAttempts; n++ {
		next, left := c.Backoff.ceiling(n), time.Duration(c.MaxAttempts-n)
		if next == c.Backoff.Max { // and so are all after it
			if next > (forEver-sum)/left {
				return forEver
			}
			return sum + next*left
		}
		sum += next
	}
	return sum
}

// uncertainPause is how long a message waits whose operation waits for a reconciliation.
const uncertainPause = time.Minute

func (h Once) run(p *Processor, ds []*delivery) {
	ds[0].outcome = h.outcome(p, ds[0])
}

func (h Once) outcome(p *Processor, d *delivery) Outcome {
	// One claim a delivery: by it a later run knows what an earlier one has left.
	claim, err := h.claim(d.message)
	if err != nil {
		return p.failed(d, DeadLetter(err))
	}
	var receipt idempotency.Receipt // of the last run
	v := h.settle(p, d, &receipt, func(ctx context.Context, tx backend.Tx) (idempotency.Receipt, error) {
		receipt, err := claim.Do(ctx, tx.Spanner(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
			return h.Effect(ctx, tx, d.message)
		})
		if err == nil && receipt.Replayed && h.Replayed != nil {
			err = h.Replayed(ctx, tx.Spanner(), d.message, receipt)
		}
		return receipt, err
	})
	var refusal *idempotency.Refusal
	if v.Result == settle.BodyFailed && errors.As(v.Err, &refusal) {
		// What the function wrote is gone with its transaction: the refusal is committed alone.
		v = h.settle(p, d, &receipt, func(ctx context.Context, tx backend.Tx) (idempotency.Receipt, error) {
			return claim.Refuse(ctx, tx.Spanner(), refusal)
		})
	}
	outcome := p.handled(d, v.Result, OperationFate(v.Err))
	if outcome == Done && receipt.Replayed {
		p.log(d, slog.LevelDebug, "the operation had been done: a duplicate", nil)
		return Duplicate
	}
	return outcome
}

func (h Once) claim(m *queue.Message) (claim *idempotency.Claim, err error) {
	err = apart(func() error {
		op, fp, err := h.Operation(m)
		if err != nil {
			return err
		}
		claim, err = h.Store.Claim(op, fp)
		return err
	})
	return claim, err
}

// settle runs body and leaves the last run's receipt in last. A run that was given up keeps its receipt to itself.
func (h Once) settle(p *Processor, d *delivery, last *idempotency.Receipt,
	body func(context.Context, backend.Tx) (idempotency.Receipt, error)) settle.Verdict {
	handler := p.caller([]*delivery{d})
	return p.settle(d, func(ctx context.Context, tx backend.Tx) error {
		receipts := make(chan idempotency.Receipt, 1)
		err := handler.call(ctx, func(ctx context.Context) error {
			receipt, err := body(ctx, tx)
			receipts <- receipt
			return err
		})
		if err != nil {
			return err
		}
		*last = <-receipts
		return d.attempt.forget(ctx, tx)
	})
}

// OperationFate turns what package idempotency refuses into what is to become of the message, as Once does: while the
// operation is in progress elsewhere or uncertain, the message is sent again for later and no attempt is used; one that asks
// for something else under a used key, whose result cannot be kept, or whose operation was done too long ago is dead-lettered
// at once. Any other error, and nil, is returned as it is.
//
// It is for handlers that use a Store themselves, such as a Call whose work is idempotency.Store.Steps:
//
//	receipt, err := store.Steps(ctx, op, fingerprint, steps)
//	return receipt, processor.OperationFate(err)
func OperationFate(err error) error {
	switch {
	case errors.Is(err, idempotency.ErrMismatch), errors.Is(err, idempotency.ErrTooLarge), errors.Is(err, idempotency.ErrExpired):
		return DeadLetter(err)
	case errors.Is(err, idempotency.ErrInProgress), errors.Is(err, idempotency.ErrNotOwner):
		after, _ := idempotency.RetryAfter(err)
		return Snooze(max(after, time.Second))
	case errors.Is(err, idempotency.ErrUncertain):
		return Snooze(uncertainPause)
	}
	return err
}
