package processor

import "errors"

// Handler is the work to do for messages. Tx, Typed, Batch, Mux.Handler, Once and Call make one; the guarantee of
// each is written on it.
type Handler interface {
	// check says what is missing of the handler.
	check() error
	// tune fills in what the handler wants where the configuration leaves it open.
	tune(*Config)
	// batch is how many messages the handler takes at a time at most.
	batch(Config) int
	// run takes deliveries, one at least, through the work and gives each its outcome.
	run(p *Processor, ds []*delivery)
}

var errNoFunction = errors.New("the handler's function is nil")

// one is embedded by handlers that take one message at a time.
type one struct{}

func (one) batch(Config) int { return 1 }

// leaver is a handler that leaves some messages to other workers.
type leaver interface {
	// leaves says whether the delivery's message is left to its lease, and nothing is to be written about it.
	leaves(p *Processor, d *delivery) bool
}

func leaves(h Handler, p *Processor, d *delivery) bool {
	l, ok := h.(leaver)
	return ok && l.leaves(p, d)
}
