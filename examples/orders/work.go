package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"golang.org/x/sync/errgroup"
)

// start lets a worker handle both queues. The returned function stops it and says what it has met with; it may be called again.
func (s shop) start(ctx context.Context) (stop func() (processor.Figures, error), err error) {
	quiet := slog.New(slog.DiscardHandler)
	stepping, err := processor.New(s.steps, s.handler(), processor.Config{Logger: quiet})
	if err != nil {
		return nil, err
	}
	answering, err := processor.New(s.answers, processor.Batch(answer), processor.Config{
		Concurrency: 1, MaxBatch: 50, Linger: 100 * time.Millisecond, Logger: quiet,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return stepping.Run(ctx) })
	both.Go(func() error { return answering.Run(ctx) })
	return sync.OnceValues(func() (processor.Figures, error) {
		cancel()
		err := both.Wait()
		return stepping.Figures(), err
	}), nil
}

// untilDone waits until both queues are empty, and returns the dead letters. A worker of yours runs until it is stopped.
func (s shop) untilDone(ctx context.Context) ([]*queue.DeadLetter, error) {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		left := 0
		for _, q := range []*queue.Queue{s.steps, s.answers} { // in this order: a step sends before it goes
			stats, err := q.Stats(ctx)
			if err != nil {
				return nil, err
			}
			left += int(stats.Ready + stats.Delayed)
		}
		if left == 0 {
			return s.steps.DeadLetters().List(ctx, queue.DeadLetterFilter{}, nil, 10)
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("%d messages are left", left), context.Cause(ctx))
		}
	}
}
