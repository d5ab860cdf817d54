package processor

import "errors"

// Handler is the work to do for a message. Tx and Call make one; the guarantee of each is written on it.
type Handler interface {
	// check says what is missing of the handler.
	check() error
	// prefetch is how many messages a slot may keep waiting before it is known how long they take.
	prefetch() int
	// run takes a delivery through the work to its outcome.
	run(p *Processor, d *delivery) Outcome
}

var errNoFunction = errors.New("the handler's function is nil")
