package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spanqueue/spanqueue/queue"
)

// Mux is a handler of a queue with many kinds of message: it gives each to the handler of its kind.
//
// A message of a kind that it does not know is left for a worker that does, during a roll-out of a new version say:
// nothing is written, and it comes again when its lease ends. Once it is older than UnknownAfter it is dead-lettered.
type Mux struct {
	// Kind says of what kind a message is. It must be set, quick, and always say the same of a message: it is asked more than
	// once. KeyColumn makes one. A message that it returns an error for is dead-lettered at once.
	Kind func(*queue.Message) (string, error)
	// Routes are the kinds. There must be one at least.
	Routes map[string]Route
	// UnknownAfter is how long after its due time, by the database's clock, a message of an unknown kind is dead-lettered;
	// 0 means an hour.
	UnknownAfter time.Duration
}

// Route is one kind of message.
type Route struct {
	// Handler does the work: Tx, Typed, Call, Once or another Mux's. New refuses a Batch, also one that is deeper within:
	// messages come in the order in which they are due, whatever their kind, so that a batch of one kind would have to wait
	// for others. Give such a kind a queue of its own.
	Handler Handler
	// Concurrency is how many messages of the kind are handled at the same time, up to the processor's; 0 means the
	// processor's. Messages beyond it wait for each other in slots of the processor, with their leases renewed. Processors
	// that were given the same handler share the bound.
	Concurrency int
	// Policy is what differs from the processor's Config, or, in a Mux that is another one's Handler, from the outer route.
	Policy Policy
}

// KeyColumn makes a Mux's Kind of a key column of type STRING.
func KeyColumn(name string) func(*queue.Message) (string, error) {
	return func(m *queue.Message) (string, error) {
		v, ok := m.Column(name)
		if !ok {
			return "", fmt.Errorf("processor: the queue's key has no column %s", name)
		}
		kind, ok := v.(string)
		if !ok {
			return "", fmt.Errorf("processor: key column %s is a %T, a kind is a string", name, v)
		}
		return kind, nil
	}
}

const defaultUnknownAfter = time.Hour

var errUnknownKind = errors.New("processor: no handler for this kind of message")

// Handler returns the handler. A Mux that makes no sense is refused by New.
func (m Mux) Handler() Handler {
	h := &muxHandler{kind: m.Kind, unknownAfter: m.UnknownAfter, routes: make(map[string]*route)}
	if h.unknownAfter == 0 {
		h.unknownAfter = defaultUnknownAfter
	}
	for kind, r := range m.Routes {
		h.routes[kind] = &route{Route: r}
		if r.Concurrency > 0 {
			h.routes[kind].slots = make(chan struct{}, r.Concurrency)
		}
	}
	return h
}

type muxHandler struct {
	one
	kind         func(*queue.Message) (string, error)
	unknownAfter time.Duration
	routes       map[string]*route
}

type route struct {
	Route
	slots chan struct{} // nil: no bound of its own
}

func (h *muxHandler) check() error {
	switch {
	case h.kind == nil:
		return errors.New("Mux.Kind is nil")
	case len(h.routes) == 0:
		return errors.New("Mux.Routes is empty")
	case h.unknownAfter < 0:
		return fmt.Errorf("Mux.UnknownAfter is %v, it must not be negative", h.unknownAfter)
	}
	for kind, r := range h.routes {
		if err := r.check(); err != nil {
			return fmt.Errorf("Mux.Routes[%q]: %w", kind, err)
		}
	}
	return nil
}

func (r *route) check() error {
	if r.Handler == nil {
		return errors.New("it has no Handler")
	}
	if _, batch := r.Handler.(batchHandler); batch {
		return errors.New("its Handler is a Batch, which takes messages of one kind only: give it a queue of its own")
	}
	if r.Concurrency < 0 {
		return fmt.Errorf("its Concurrency is %d, it must not be negative", r.Concurrency)
	}
	if err := r.Policy.validate(); err != nil {
		return fmt.Errorf("its Policy: %w", err)
	}
	return r.Handler.check()
}

// checkLimits refuses routes with a limit of attempts where nothing is dead-lettered.
func (h *muxHandler) checkLimits(c Config) error {
	for kind, r := range h.routes {
		if c.MaxAttempts < 0 && r.Policy.MaxAttempts > 0 {
			return fmt.Errorf("Mux.Routes[%q]: its Policy: MaxAttempts is %d, but Config.MaxAttempts is %d, so that attempts have no limit and there are no dead letters",
				kind, r.Policy.MaxAttempts, c.MaxAttempts)
		}
		if inner, ok := r.Handler.(*muxHandler); ok {
			if err := inner.checkLimits(c); err != nil {
				return fmt.Errorf("Mux.Routes[%q]: %w", kind, err)
			}
		}
	}
	return nil
}

func (h *muxHandler) tune(c *Config) {
	for _, r := range h.routes {
		r.Handler.tune(c)
		// Deferral must outlast the longest handler of the queue; each knows its own limit besides.
		c.Receiver.HandlerTimeout = max(c.Receiver.HandlerTimeout, r.Policy.HandlerTimeout)
	}
}

func (h *muxHandler) run(p *Processor, ds []*delivery) {
	d := ds[0]
	kind, err := h.kindOf(d.message)
	if err != nil {
		d.outcome = p.failed(d, DeadLetter(err))
		return
	}
	r, known := h.routes[kind]
	if !known {
		d.outcome = h.unknown(p, d, kind)
		return
	}
	d.policy = r.Policy.or(d.policy) // a Mux within a Mux goes by the outer route's
	if r.slots != nil {
		select {
		case r.slots <- struct{}{}:
			defer func() { <-r.slots }()
		case <-p.handlers.Done():
			d.outcome = Interrupted
			return
		}
	}
	r.Handler.run(p, ds)
}

// kindOf asks the user's function, whose panic is an error of this message.
func (h *muxHandler) kindOf(m *queue.Message) (kind string, err error) {
	err = apart(func() (err error) {
		kind, err = h.kind(m)
		return err
	})
	return kind, err
}

// leaves implements leaver: a message of an unknown kind is left to a worker that knows it, until it is too old.
func (h *muxHandler) leaves(p *Processor, d *delivery) bool {
	kind, err := h.kindOf(d.message)
	if err != nil {
		return false
	}
	if r, known := h.routes[kind]; known {
		return leaves(r.Handler, p, d)
	}
	return !h.tooOld(p, d, kind) // one that is given up is counted first: its dead letter says how often it was tried
}

// unknown gives up a message of an unknown kind.
func (h *muxHandler) unknown(p *Processor, d *delivery, kind string) Outcome {
	if !h.tooOld(p, d, kind) { // Kind has changed its mind
		return Interrupted
	}
	return p.bury(d, reasonKind, fmt.Errorf("%w: %q", errUnknownKind, kind))
}

// tooOld says whether a message of an unknown kind is given up, and logs it if it is not.
func (h *muxHandler) tooOld(p *Processor, d *delivery, kind string) bool {
	ctx, cancel := context.WithTimeout(p.settling, p.config.CommitTimeout)
	defer cancel()
	now, err := p.queue.ServerTime(ctx)
	if err == nil && now.Sub(d.message.DeliverTime) > h.unknownAfter && p.attempts.ledger != nil {
		return true
	}
	p.log(d, slog.LevelWarn, "no handler for this kind of message; it is left for a worker that has one", err, slog.String("kind", kind))
	return false
}
