package processor

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/spanqueue/spanqueue/lease"
	"github.com/spanqueue/spanqueue/queue"
)

// Processor runs a handler for the messages of a queue. Make one with New, run it once with Run.
type Processor struct {
	queue    *queue.Queue
	receiver *lease.Receiver
	handler  Handler
	config   Config
	tag      string

	figures   counters
	telemetry *telemetry
	attempts  *attempts
	running   running
	inFlight  inFlight

	state atomic.Int32 // one of the states below; it never goes back
	// settling is the context of acknowledgements, commits and probes: it outlives the stop, and ends when Run gives up
	// what did not end in time. handlers ends when draining is over. Both are set by Run before anything else starts.
	settling, handlers context.Context

	stopping   chan struct{} // closed by the first Shutdown
	stopOnce   sync.Once
	hurry      chan struct{} // closed when a Shutdown's context has ended: drain no longer
	hurryOnce  sync.Once
	ended      chan struct{} // closed when Run has returned
	endedError error         // what Run returned; set before ended is closed
}

const (
	stateNew int32 = iota
	stateRun
	stateStopped // by a Shutdown before Run
)

// New makes a processor of the queue's messages. It sends nothing to the database. A configuration that makes no sense is
// refused by the name of its field, with an error that wraps ErrInvalid.
//
// Unless Config.MaxAttempts is below zero, Run needs two tables beside the queue: apply schema.Attempts, with a
// RetentionDays (see Attempts in the package documentation), and schema.DeadLetters with it.
func New(q *queue.Queue, h Handler, config Config) (*Processor, error) {
	if q == nil {
		return nil, fmt.Errorf("%w: the queue is nil", ErrInvalid)
	}
	if h == nil {
		return nil, fmt.Errorf("%w: the handler is nil; make one with Tx, Batch or Call", ErrInvalid)
	}
	if err := h.check(); err != nil {
		return nil, fmt.Errorf("%w: the handler: %w", ErrInvalid, err)
	}
	if err := checkQueue(h, q.Backend()); err != nil {
		return nil, fmt.Errorf("%w: the handler: %w", ErrInvalid, err)
	}
	if mux, ok := h.(*muxHandler); ok {
		if err := mux.checkLimits(config); err != nil {
			return nil, fmt.Errorf("%w: the handler: %w", ErrInvalid, err)
		}
	}
	config = config.withDefaults(q.Name())
	h.tune(&config)
	if err := config.validate(); err != nil {
		return nil, err
	}
	receiver, err := lease.NewReceiver(q, config.Receiver)
	if err != nil {
		return nil, fmt.Errorf("%w: Receiver: %w", ErrInvalid, err)
	}
	telemetry, err := newTelemetry(config, q.Name())
	if err != nil {
		return nil, fmt.Errorf("%w: MeterProvider: %w", ErrInvalid, err)
	}
	return &Processor{
		telemetry: telemetry,
		receiver:  receiver,
		queue:     q,
		handler:   h,
		attempts:  newAttempts(q.Backend(), config.MaxAttempts, max(config.CommitTimeout, q.Backend().LeaseLength())),
		config:    config,
		tag:       "queue=" + q.Name() + ",handler=" + config.Name,
		stopping:  make(chan struct{}),
		hurry:     make(chan struct{}),
		ended:     make(chan struct{}),
	}, nil
}
