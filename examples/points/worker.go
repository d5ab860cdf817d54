package main

import (
	"context"
	"log/slog"

	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/processor"
)

// concurrency is how many messages one worker handles at a time.
const concurrency = 4

// worker takes messages from the queue until ctx ends, and then finishes what it has begun.
type worker interface {
	Run(ctx context.Context) error
	figures() figures
}

// figures is what a worker has met with.
type figures struct {
	deliveries int64 // messages, as often as they came
	lost       int64 // commits that nobody got an answer for
	unsettled  int64 // those of them whose outcome could not be found out
}

func (f figures) plus(o figures) figures {
	return figures{
		deliveries: f.deliveries + o.deliveries,
		lost:       f.lost + o.lost,
		unsettled:  f.unsettled + o.unsettled,
	}
}

// newWorker makes a worker for a database.
type newWorker func(*database, *slog.Logger) (worker, error)

// handling makes workers that are processors with the given handler: the way to use the library.
func handling(handler func(*idempotency.Store) processor.Handler) newWorker {
	return func(db *database, log *slog.Logger) (worker, error) {
		p, err := processor.New(db.queue, handler(db.records), processor.Config{
			Concurrency: concurrency,
			Logger:      log,
		})
		return process{p}, err
	}
}

type process struct{ *processor.Processor }

func (p process) figures() figures {
	f := p.Figures()
	return figures{
		deliveries: f.Receiver.Received + f.Receiver.Again,
		lost:       f.UnknownCommits,
		unsettled:  f.Deliveries[processor.Unresolved],
	}
}
