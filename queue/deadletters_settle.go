package queue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/deadletter"
	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
)

// Redrive moves the letter back into the queue, in one transaction: the message is sent under its own key, due now, with
// its payload byte for byte and its priority, and begins anew: its attempts are not inherited.
//
// However many operators redrive it at once, there is one message: the others get ErrNoDeadLetter. When the key is in the
// queue the error wraps ErrExists, and the letter is kept.
//
// An answer to the commit that is lost is found out about, and nil means that the letter is settled: by this call, or in
// that case perhaps by somebody else in the same moment. Redrive blocks until that is known; when ctx ends while a commit
// is out, up to 5 s longer.
func (d *DeadLetters) Redrive(ctx context.Context, key spanner.Key, deadAt time.Time) error {
	id, err := d.id(key, deadAt)
	if err != nil {
		return err
	}
	err = d.store.Redrive(ctx, id)
	if spanner.ErrCode(err) == codes.AlreadyExists {
		err = fmt.Errorf("%w: %w", ErrExists, err)
	}
	if err != nil {
		return d.failed(key, deadAt, "redrive", err)
	}
	return nil
}

// Discard removes the letter for good. The error wraps ErrNoDeadLetter when there is none. It deals with lost answers and
// with the end of ctx as Redrive does.
func (d *DeadLetters) Discard(ctx context.Context, key spanner.Key, deadAt time.Time) error {
	id, err := d.id(key, deadAt)
	if err != nil {
		return err
	}
	if err := d.store.Discard(ctx, id); err != nil {
		return d.failed(key, deadAt, "discard", err)
	}
	return nil
}

// BulkOptions are how RedriveAll and DiscardAll go about it. The zero value is good.
type BulkOptions struct {
	// Rate is how many letters a second are settled at most; 0 means as fast as it goes.
	Rate float64
	// Each, if set, is called with every letter (without its payload) and what became of it: nil, or an error that wraps
	// ErrExists or ErrNoDeadLetter. It is called from the goroutine of the call, which waits for it.
	Each func(*DeadLetter, error)
}

func (o BulkOptions) validate() error {
	if o.Rate < 0 || math.IsNaN(o.Rate) || math.IsInf(o.Rate, 0) {
		return invalid("BulkOptions.Rate is %v, it must be 0 (no limit) or a number of letters a second above it", o.Rate)
	}
	return nil
}

// BulkResult counts what became of the letters.
type BulkResult struct {
	// Settled letters were redriven, or discarded.
	Settled int
	// Kept letters could not be redriven: their keys are in the queue.
	Kept int
	// Gone letters were settled by somebody else before their turn came.
	Gone int
}

// RedriveAll redrives the letters that the filter chooses, oldest first, one after another, a transaction each. Letters of
// messages that die while it runs are left for another time, so that a message that dies at once is not redriven without
// end. Of several letters of one key the first is redriven, and the others are kept while it is in the queue.
//
// It blocks until all are settled, ctx ends, or one cannot be settled for another reason than those that BulkResult counts.
// The result counts what was done until then. Calling it again goes on with what is left.
func (d *DeadLetters) RedriveAll(ctx context.Context, f DeadLetterFilter, o BulkOptions) (BulkResult, error) {
	return d.all(ctx, f, o, d.Redrive)
}

// DiscardAll removes the letters that the filter chooses, as RedriveAll redrives them.
func (d *DeadLetters) DiscardAll(ctx context.Context, f DeadLetterFilter, o BulkOptions) (BulkResult, error) {
	return d.all(ctx, f, o, d.Discard)
}

// bulkPage is how many letters one list of a bulk call holds: each costs a scan of the table.
const bulkPage = 500

func (d *DeadLetters) all(ctx context.Context, f DeadLetterFilter, o BulkOptions, settle func(context.Context, spanner.Key, time.Time) error) (BulkResult, error) {
	var result BulkResult
	if err := o.validate(); err != nil {
		return result, err
	}
	filter, err := d.filter(f)
	if err != nil {
		return result, err
	}
	latest, err := d.store.Latest(ctx)
	if err != nil {
		return result, fmt.Errorf("queue: dead letters of %s: %w", d.queue.Name(), err)
	}
	// Times of death are compared with each other only: no clock of ours says when this call began.
	if end := latest.Add(time.Nanosecond); filter.Until.IsZero() || end.Before(filter.Until) {
		filter.Until = end
	}
	pace := rate.NewLimiter(rate.Inf, 1)
	if o.Rate > 0 {
		pace.SetLimit(rate.Limit(o.Rate))
	}
	var after *deadletter.ID
	for {
		letters, err := d.store.Page(ctx, filter, after, bulkPage)
		if err != nil {
			return result, fmt.Errorf("queue: dead letters of %s: %w", d.queue.Name(), err)
		}
		for _, l := range letters {
			if err := pace.Wait(ctx); err != nil {
				if ctx.Err() == nil { // it does not wait for a turn that comes too late
					err = fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
				}
				return result, fmt.Errorf("queue: dead letters of %s: %w", d.queue.Name(), err)
			}
			err := settle(ctx, l.Key, l.DeadAt)
			if !result.count(err) {
				return result, err
			}
			if o.Each != nil {
				o.Each(publish(l), err)
			}
			after = &deadletter.ID{Key: l.Key, DeadAt: l.DeadAt}
		}
		if len(letters) < bulkPage {
			return result, nil
		}
	}
}

// count notes what became of a letter and reports whether to go on.
func (r *BulkResult) count(err error) bool {
	switch {
	case err == nil:
		r.Settled++
	case errors.Is(err, ErrExists):
		r.Kept++
	case errors.Is(err, ErrNoDeadLetter):
		r.Gone++
	default:
		return false
	}
	return true
}
