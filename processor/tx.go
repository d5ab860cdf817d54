package processor

import (
	"context"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/queue"
)

// TxFunc does the work of one message inside the transaction that acknowledges it.
type TxFunc func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error

// Tx makes a handler of a function that does its work in a Spanner transaction. What it writes through tx takes effect
// exactly once, in the commit that takes the message from the queue.
//
// The function may be called several times for one delivery, as any transaction function, and must not keep tx or start
// a goroutine that uses it after it has returned: the transaction refuses them then. It must do nothing slow and nothing
// that reaches outside the transaction: a transaction that is idle for 10 s may be aborted, and a call to the outside is
// not undone; Call is for those. A transaction of its own, opened through ctx, is refused by Google's client.
//
// What it returns decides: nil commits. An error rolls everything back and sends the message again later, or after
// MaxAttempts failures to the dead letters; Retry, Snooze, Discard and DeadLetter say otherwise. An error that no later
// attempt makes good moves it there at once: ErrUndecodable, queue.ErrInvalid, idempotency.ErrInvalid and
// idempotency.ErrMismatch, wrapped or not. An error of tx may be returned as it is or wrapped. When the function ignores an
// error of tx and returns nil, the rest of its writes commit.
func Tx(f TxFunc) Handler { return txHandler{f: f} }

type txHandler struct {
	one
	f TxFunc
}

func (h txHandler) check() error {
	if h.f == nil {
		return errNoFunction
	}
	return nil
}

func (h txHandler) tune(*Config) {}

func (h txHandler) run(p *Processor, ds []*delivery) {
	d := ds[0]
	handler := p.caller(ds)
	v := p.settle(d, func(ctx context.Context, tx backend.Tx) error {
		err := handler.call(ctx, func(ctx context.Context) error { return h.f(ctx, tx.Spanner(), d.message) })
		if err != nil {
			return err
		}
		return d.attempt.forget(ctx, tx)
	})
	d.outcome = p.handled(d, v.Result, v.Err)
}
