package processor

import (
	"context"
	"errors"
	"log/slog"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/lease"
	"github.com/spanqueue/spanqueue/queue"
)

// Call is a handler of work that does not fit into a transaction: it reaches outside, or takes long.
//
// At least once for Call: it may run again after a crash, a lost lease, an error, or the end of a deferral's time, and a
// run that has lost its lease may still be under way. Give the other side a key that names the intent (DownstreamKey), so
// that it can recognise a repetition. Exactly once for what Settle writes: it runs in the transaction that acknowledges
// the message, with the result of the Call that came before it.
//
// Call starts when the lease has been renewed successfully once, so that nobody else holds the message then, and the lease
// is renewed while it runs. h.Defer and h.Checkpoint postpone the message beyond the work instead of renewing, by no less
// than HandlerTimeout; the guarantee of each is written on it.
//
// Its context ends at HandlerTimeout (cause ErrHandlerTimeout), when the lease is lost (lease.ErrLost), when the time of a
// deferral is over (lease.ErrDeferralOver), and when draining is (ErrDrainTimeout). It should return then, and begin nothing
// more outside: somebody else may be at it. A result that it still returns within a second is settled if the message has not
// been settled elsewhere; an error, if it is the context's, is a failure after HandlerTimeout and none otherwise. After that
// second the Call is given up: its slot goes to another message, its result to nobody, and h refuses with lease.ErrReleased
// what it is still asked for. A deferred message that is left by a Call which draining has ended, and which has returned, is
// sent again, due at once; in any other case it is out of reach until its time.
//
// Settle may run several times, as any transaction function: after an unknown outcome only Settle runs again, never Call.
// What both return decides as with Tx.
type Call[R any] struct {
	Call   func(ctx context.Context, h *lease.Held) (R, error)
	Settle func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message, result R) error
}

func (c Call[R]) check() error {
	if c.Call == nil || c.Settle == nil {
		return errors.New("Call and Settle must both be set")
	}
	return nil
}

func (c Call[R]) batch(Config) int { return 1 }

// tune keeps few messages waiting: calls are slow, and what waits here is kept from others.
func (c Call[R]) tune(config *Config) {
	if config.Receiver.Prefetch == 0 {
		config.Receiver.Prefetch = 2
	}
}

func (c Call[R]) run(p *Processor, ds []*delivery) {
	ds[0].outcome = c.outcome(p, ds)
}

func (c Call[R]) outcome(p *Processor, ds []*delivery) Outcome {
	d := ds[0]
	if err := d.held.Confirm(p.handlers); err != nil {
		if p.handlers.Err() != nil {
			return Interrupted
		}
		p.log(d, slog.LevelWarn, "the lease could not be renewed before the call; the message is left to it", err)
		return LeaseLost
	}
	d.held.Carry(d.attempt.carry)
	d.held.Limit(d.policy.HandlerTimeout)
	ctx, cancel := d.held.Context(d.ctx)
	defer cancel()
	// A run that was given up keeps its result to itself.
	results := make(chan R, 1)
	err := p.caller(ds).call(ctx, func(ctx context.Context) error {
		result, err := c.Call(ctx, d.held)
		results <- result
		return err
	})
	received := d.message.DeliverTime
	d.message = d.attempt.moved(d.held.Message())
	if err != nil {
		if deferred := !d.message.DeliverTime.Equal(received); deferred && returnedAtStop(err) {
			p.log(d, slog.LevelInfo, "the stop interrupted the handler; the message is sent again, since it was deferred", err)
			return p.postpone(d, Interrupted, 0, d.attempt.before)
		}
		return p.failed(d, err)
	}
	result := <-results
	d.held.Settling()
	settling := p.caller(ds)
	v := p.settle(d, func(ctx context.Context, tx backend.Tx) error {
		err := settling.call(ctx, func(ctx context.Context) error { return c.Settle(ctx, tx.Spanner(), d.message, result) })
		if err != nil {
			return err
		}
		return d.attempt.forget(ctx, tx)
	})
	return p.handled(d, v.Result, v.Err)
}

// returnedAtStop says whether the error is that of a handler which has returned because draining was over.
func returnedAtStop(err error) bool {
	var ended *endedError
	return errors.As(err, &ended) && errors.Is(ended.cause, ErrDrainTimeout) && ended.err != errIgnoredContext
}
