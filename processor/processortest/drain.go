package processortest

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
)

// TB is what the helpers need of a *testing.T.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

const (
	// patience bounds every helper.
	patience = time.Minute
	// firstPause and lastPause are how long a helper waits before it looks again, first and at most.
	firstPause, lastPause = time.Millisecond, 50 * time.Millisecond
)

// WorkOnce takes one delivery of the queue to its outcome, the first that comes, and returns it. The test fails when no
// message is due.
func WorkOnce(t TB, q *queue.Queue, h processor.Handler, config processor.Config) processor.Outcome {
	t.Helper()
	f, err := workOnce(q, h, config)
	if err != nil {
		t.Fatalf("processortest: %v", err)
	}
	for outcome := range f.Deliveries {
		return outcome
	}
	t.Fatalf("processortest: no delivery has ended")
	return 0
}

func workOnce(q *queue.Queue, h processor.Handler, config processor.Config) (processor.Figures, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := q.Stats(ctx)
	switch {
	case err != nil:
		return processor.Figures{}, err
	case s.Ready == 0:
		return processor.Figures{}, fmt.Errorf("no message of queue %s is due; %d are delayed", q.Name(), s.Delayed)
	}
	return run(ctx, queue.FromBackend(onlyOne(q.Backend())), h, config, func(f processor.Figures) (bool, error) {
		return len(f.Deliveries) > 0, nil
	})
}

// Drain runs the handler until no message of the queue is due any more, those that handlers send meanwhile included, and
// returns how many deliveries have ended in which way. Messages that are due later, by a retry say, are left; one that is
// retried at once again and again fails the test.
func Drain(t TB, q *queue.Queue, h processor.Handler, config processor.Config) map[processor.Outcome]int64 {
	t.Helper()
	return mustDrain(t, q, h, config, func(s queue.Stats) bool { return s.Ready == 0 })
}

// DrainAll is Drain that waits for messages that are due later too, until the queue is empty: so retries are seen through to
// their ends. The test fails when that takes more than a minute: give config a short Backoff, or Retry a short pause.
func DrainAll(t TB, q *queue.Queue, h processor.Handler, config processor.Config) map[processor.Outcome]int64 {
	t.Helper()
	return mustDrain(t, q, h, config, func(s queue.Stats) bool { return s.Ready == 0 && s.Delayed == 0 })
}

func mustDrain(t TB, q *queue.Queue, h processor.Handler, config processor.Config, drained func(queue.Stats) bool) map[processor.Outcome]int64 {
	t.Helper()
	total, err := drain(q, h, config, drained)
	if err != nil {
		t.Fatalf("processortest: %v; deliveries so far: %v", err, total)
	}
	return total
}

func drain(q *queue.Queue, h processor.Handler, config processor.Config, drained func(queue.Stats) bool) (map[processor.Outcome]int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	nothingDue := func(processor.Figures) (bool, error) {
		s, err := q.Stats(ctx)
		return drained(s), err
	}
	total := make(map[processor.Outcome]int64)
	for {
		f, err := run(ctx, q, h, config, nothingDue)
		for outcome, n := range f.Deliveries {
			total[outcome] += n
		}
		if err != nil {
			return total, err
		}
		// A handler that was ending may have sent a message, after nothing was due for a moment.
		if done, err := nothingDue(f); done || err != nil {
			return total, err
		}
	}
}

// run runs a processor until done, and stops it.
func run(ctx context.Context, q *queue.Queue, h processor.Handler, config processor.Config,
	done func(processor.Figures) (bool, error)) (processor.Figures, error) {
	p, err := processor.New(q, h, config)
	if err != nil {
		return processor.Figures{}, err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- p.Run(running) }()

	waitErr := wait(ctx, ended, func() (bool, error) { return done(p.Figures()) })
	if waitErr == errEnded {
		return p.Figures(), fmt.Errorf("the processor has ended: %w", <-ended)
	}
	stop()
	err = <-ended
	f := p.Figures()
	if waitErr != nil {
		return f, fmt.Errorf("queue %s: %w; deliveries: %v", q.Name(), waitErr, maps.Clone(f.Deliveries))
	}
	return f, err
}
