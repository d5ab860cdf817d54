package queue

import (
	"context"
	"iter"
	"time"

	"github.com/spanqueue/spanqueue/internal/backend"
)

// ReceiveOptions are what one receive query asks for. The zero value is good.
type ReceiveOptions struct {
	// MaxDuration is how long the stream stays open, at least 1 s and at most 24 h, rounded up to whole seconds; 0 means
	// 2 minutes. Spanner advises about 20 minutes for its queues; but the client re-opens a broken stream in silence, and
	// after a bad break it stays silent for up to MaxDuration + 10 s, when the stream is given up. Shorter is safer. A
	// queue table has no stream to break: it is looked at until MaxDuration has passed.
	MaxDuration time.Duration
	// MaxBatch is how many messages are taken at once, 1 to 1000; 0 leaves it to Spanner, and is 20 for a queue table. It
	// does not bound how many messages the stream brings: there is no such bound. Spanner sends ahead of the loop; a queue
	// table takes the next batch when the loop has taken all of the one before.
	MaxBatch int
}

const (
	defaultReceiveDuration = 2 * time.Minute
	maxReceiveDuration     = 24 * time.Hour
	maxReceiveBatch        = 1000
)

func (o ReceiveOptions) withDefaults() ReceiveOptions {
	if o.MaxDuration == 0 {
		o.MaxDuration = defaultReceiveDuration
	}
	return o
}

func (o ReceiveOptions) validate() error {
	if o.MaxDuration < time.Second || o.MaxDuration > maxReceiveDuration {
		return invalid("ReceiveOptions.MaxDuration is %v, it must be from 1s to %v", o.MaxDuration, maxReceiveDuration)
	}
	if o.MaxBatch < 0 || o.MaxBatch > maxReceiveBatch {
		return invalid("ReceiveOptions.MaxBatch is %d, it must be from 0 to %d", o.MaxBatch, maxReceiveBatch)
	}
	return nil
}

// Receive opens one receive stream and yields its messages as they come due, until MaxDuration has passed (the loop
// simply ends), ctx ends, or the loop is left. An error is yielded last, with a nil message.
//
// This is the bare stream: nothing is renewed. Messages that were on their way when the loop was left come again when their
// leases end; a queue table gives them back at once, and also those that the loop would get with less than half of their
// lease left. Delivery is at least once. There is no order, but the one that a queue table's definition asks for.
func (q *Queue) Receive(ctx context.Context, o ReceiveOptions) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		o = o.withDefaults()
		if err := o.validate(); err != nil {
			yield(nil, err)
			return
		}
		for d, err := range q.backend.Receive(ctx, backend.ReceiveRequest{MaxDuration: o.MaxDuration, MaxBatch: o.MaxBatch}) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(q.message(d), nil) {
				return
			}
		}
	}
}
