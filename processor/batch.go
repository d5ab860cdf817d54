package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/settle"
	"github.com/spanqueue/spanqueue/queue"
)

// BatchFunc does the work of several messages inside the one transaction that acknowledges them.
type BatchFunc func(ctx context.Context, tx *spanner.ReadWriteTransaction, ms []*queue.Message) error

// Batch makes a handler of a function that does the work of up to Config.MaxBatch messages in one Spanner transaction. What
// it writes through tx takes effect exactly once for each message, in the commit that takes them all from the queue: two
// RPCs for the acknowledgements and the commit, however many messages there are.
//
// Messages that are gone when the transaction starts are not among ms; a later run of the function may get fewer than the
// one before. For the function the rules of Tx hold.
//
// When it returns an error nothing is kept. The batch is then halved and run again, until the message that fails stands
// alone: only that one has failed, and only its attempts are counted. An error that names its message (ForMessage, joined
// with errors.Join if there are several) spares the search: the named ones get the fate that their errors ask for, and
// the others are run again without them.
func Batch(f BatchFunc) Handler { return batchHandler{f} }

// ForMessage returns an error that blames one message of a batch. err may be made by Retry, Snooze, Discard or DeadLetter.
func ForMessage(m *queue.Message, err error) error { return &messageError{m, err} }

type messageError struct {
	message *queue.Message
	err     error
}

func (e *messageError) Error() string { return fmt.Sprintf("message %v: %v", e.message, e.err) }
func (e *messageError) Unwrap() error { return e.err }

type batchHandler struct{ f BatchFunc }

func (h batchHandler) check() error {
	if h.f == nil {
		return errNoFunction
	}
	return nil
}

func (h batchHandler) batch(c Config) int { return c.MaxBatch }

// tune keeps a batch waiting for each worker: a slot takes many messages at once.
func (h batchHandler) tune(c *Config) {
	if c.Receiver.LowWater == 0 {
		c.Receiver.LowWater = min(c.MaxBatch*c.Concurrency, 1000)
	}
}

func (h batchHandler) run(p *Processor, ds []*delivery) {
	x := settle.Batch{
		Queue:          p.queue.Backend(),
		Deliveries:     make([]backend.Delivery, len(ds)),
		Tag:            p.tag,
		MaxRuns:        p.config.MaxRuns,
		RunTime:        p.config.runTime(),
		AckTimeout:     p.config.patience(),
		CommitTimeout:  p.config.CommitTimeout,
		ResolveTimeout: p.config.ResolveTimeout,
	}
	for i, d := range ds {
		x.Deliveries[i] = d.message.Delivery()
	}
	handler := p.caller(ds)
	x.Body = func(ctx context.Context, tx backend.Tx, held []int) error {
		messages := make([]*queue.Message, len(held))
		for i, at := range held {
			messages[i] = ds[at].message
		}
		if err := handler.call(ctx, func(ctx context.Context) error { return h.f(ctx, tx.Spanner(), messages) }); err != nil {
			return err
		}
		for _, at := range held {
			if err := ds[at].attempt.forget(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	}
	v := x.Run(p.settling)
	p.settled(v.Runs, v.Aborts, v.Unknown)

	var failed []*delivery
	for i, d := range ds {
		switch v.Results[i] {
		case settle.BodyFailed, settle.Refused:
			failed = append(failed, d)
		default:
			d.outcome = p.handled(d, v.Results[i], v.Err)
		}
	}
	if len(failed) > 0 {
		h.failed(p, failed, v.Err)
	}
}

// failed sees to the messages of a batch that failed: to the blamed ones by what their errors ask for, to a single one by
// the batch's error, and to the others by running them again in smaller batches.
func (h batchHandler) failed(p *Processor, ds []*delivery, err error) {
	var ended *endedError
	if len(ds) == 1 || (errors.As(err, &ended) && !errors.Is(ended.cause, ErrHandlerTimeout)) {
		for _, d := range ds {
			d.outcome = p.failed(d, blame(d.message, err))
		}
		return
	}
	var rest []*delivery
	for _, d := range ds {
		if blamed := find(err, d.message); blamed != nil {
			d.outcome = p.failed(d, blamed)
			continue
		}
		rest = append(rest, d)
	}
	switch {
	case len(rest) == 0:
	case len(rest) < len(ds):
		h.run(p, rest)
	default:
		p.log(ds[0], slog.LevelInfo, "a batch failed and is halved to find the message that does not work", err, slog.Int("messages", len(ds)))
		h.run(p, rest[:len(rest)/2])
		h.run(p, rest[len(rest)/2:])
	}
}

// blame returns the error of the message: its own, if there is one.
func blame(m *queue.Message, err error) error {
	if own := find(err, m); own != nil {
		return own
	}
	return err
}

// find returns the error that blames the message, or nil. It looks through every branch of a joined error.
func find(err error, m *queue.Message) error {
	switch e := err.(type) {
	case nil:
		return nil
	case *messageError:
		if e.message == m {
			return e.err
		}
		return nil
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			if found := find(one, m); found != nil {
				return found
			}
		}
		return nil
	case interface{ Unwrap() error }:
		return find(e.Unwrap(), m)
	}
	return nil
}
