package processor

import (
	"context"
	"fmt"

	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/queue"
)

// Through makes a handler as Tx does, of a function whose transactions are not those of the queue but of what wrap makes of
// it; everything else is done by the queue itself. It is for the packages of this module, as queue.FromBackend is.
func Through(wrap func(backend.Queue) (backend.Queue, error), f func(context.Context, backend.Tx, *queue.Message) error) Handler {
	return throughHandler{wrap: wrap, f: f}
}

type throughHandler struct {
	one
	wrap func(backend.Queue) (backend.Queue, error)
	f    func(context.Context, backend.Tx, *queue.Message) error
}

func (h throughHandler) check() error {
	if h.wrap == nil || h.f == nil {
		return errNoFunction
	}
	return nil
}

func (h throughHandler) tune(*Config) {}

// queueChecker is a handler that does not serve every queue.
type queueChecker interface {
	checkQueue(backend.Queue) error
}

func (h throughHandler) checkQueue(q backend.Queue) error {
	_, err := h.wrap(q)
	return err
}

func (h *muxHandler) checkQueue(q backend.Queue) error {
	for kind, r := range h.routes {
		if err := checkQueue(r.Handler, q); err != nil {
			return fmt.Errorf("Mux.Routes[%q]: %w", kind, err)
		}
	}
	return nil
}

func checkQueue(h Handler, q backend.Queue) error {
	if c, ok := h.(queueChecker); ok {
		return c.checkQueue(q)
	}
	return nil
}

func (h throughHandler) run(p *Processor, ds []*delivery) {
	d := ds[0]
	q, err := h.wrap(p.queue.Backend())
	if err != nil { // New has seen to it that this does not happen
		d.outcome = p.failed(d, err)
		return
	}
	handler := p.caller(ds)
	v := p.settleBy(q, d, func(ctx context.Context, tx backend.Tx) error {
		err := handler.call(ctx, func(ctx context.Context) error { return h.f(ctx, tx, d.message) })
		if err != nil {
			return err
		}
		return d.attempt.forget(ctx, tx)
	})
	d.outcome = p.handled(d, v.Result, v.Err)
}
