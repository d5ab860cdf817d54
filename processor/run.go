package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/lease"
	"google.golang.org/grpc/codes"
)

// abandonAfter is how long Run waits for handlers after their contexts have ended. It is a little more than the grace
// of a single handler.
const abandonAfter = ignoreGrace + 500*time.Millisecond

// lastWait is how long Run waits for its workers after everything that they wait for was ended. Only a rollback takes
// longer.
const lastWait = 250 * time.Millisecond

var errAbandoned = errors.New("processor: Run has returned")

// Run receives messages and runs the handler for them until ctx ends or Shutdown is called, then drains: nothing new is
// taken, handlers that have started go on, their leases are renewed and their work is committed. After DrainTimeout their
// contexts end, and soon after, whatever they do, Run returns.
//
// It returns nil when everything that it started has ended, an *AbandonedError when handlers ignored the end of their
// contexts, ErrRunning when it was called before, and ErrStopped when Shutdown was. When a table that it needs is missing
// it returns an error at once. Other troubles of the database do not end it: it goes on until it is stopped. Only handlers
// that ignore their contexts, and rollbacks that are under way, may outlive it.
func (p *Processor) Run(ctx context.Context) error {
	if !p.state.CompareAndSwap(stateNew, stateRun) {
		if p.state.Load() == stateStopped {
			return ErrStopped
		}
		return ErrRunning
	}
	p.endedError = p.run(ctx)
	close(p.ended)
	return p.endedError
}

func (p *Processor) run(ctx context.Context) error {
	endTelling := sync.OnceFunc(p.telemetry.open())
	defer endTelling()
	if p.attempts.ledger != nil {
		err := p.checkLedger(ctx)
		if spanner.ErrCode(err) == codes.NotFound {
			// Logged besides, since a Run in a goroutine of its own may not be looked at before the program ends.
			err = fmt.Errorf("processor: %w; or set Config.MaxAttempts below zero", err)
			p.telemetry.log(slog.LevelError, "nothing is handled", slog.Any("error", err))
			return err
		}
		// Any other error is a trouble of the database, which does not end Run.
	}
	endObserving, err := p.telemetry.observe(p)
	if err != nil {
		return fmt.Errorf("processor: register figures: %w", err)
	}
	defer endObserving()
	base := context.WithoutCancel(ctx)
	settling, endSettling := context.WithCancelCause(base)
	defer endSettling(errAbandoned)
	handlers, endHandlers := context.WithCancelCause(base)
	defer endHandlers(errAbandoned)
	p.settling, p.handlers = settling, handlers

	fetching, stopFetching := context.WithCancel(ctx)
	defer stopFetching()
	receiving := make(chan error, 1)
	go func() { receiving <- p.receiver.Run(fetching) }()
	finish := func() error {
		var telling sync.WaitGroup
		telling.Go(endTelling) // the receiver may wait for the same logger
		err := <-receiving
		telling.Wait()
		return errors.Join(err, p.abandoned())
	}

	var workers sync.WaitGroup
	for range p.config.Concurrency {
		workers.Go(func() { p.work(fetching) })
	}
	idle := make(chan struct{})
	go func() {
		workers.Wait()
		close(idle)
	}()

	select {
	case <-ctx.Done():
	case <-p.stopping:
	}
	stopFetching()
	drain := time.NewTimer(p.config.DrainTimeout)
	defer drain.Stop()
	select {
	case <-idle: // but a handler that was given up earlier may still be running
		return finish()
	case <-drain.C:
	case <-p.hurry:
	}
	endHandlers(ErrDrainTimeout)
	abandon := time.NewTimer(abandonAfter)
	defer abandon.Stop()
	select {
	case <-idle:
		return finish()
	case <-abandon.C:
	}
	// What is still under way is a rollback, a probe, or a handler that was given up: none of it can commit any more.
	endSettling(errAbandoned)
	p.inFlight.releaseAll()
	last := time.NewTimer(lastWait)
	defer last.Stop()
	select {
	case <-idle: // with the outcomes told
	case <-last.C:
	}
	return finish()
}

const (
	// notFoundTimes is how often a table must not be found to count as missing, notFoundPause the widest pause between.
	notFoundTimes = 5
	notFoundPause = 200 * time.Millisecond
)

// checkLedger says what is missing in the database. A session or a transaction that is not found has the same code as a
// table, and is a trouble that passes, so it asks several times. A database that does not answer is not waited for for
// long.
func (p *Processor) checkLedger(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.config.patience())
	defer cancel()
	go func() {
		select {
		case <-p.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	var err error
	for range notFoundTimes {
		err = p.attempts.ledger.CheckLedger(ctx)
		if spanner.ErrCode(err) != codes.NotFound || !pauseUpTo(ctx, notFoundPause) {
			break
		}
	}
	return err
}

// work handles messages until there are no more to take.
func (p *Processor) work(fetching context.Context) {
	size := p.handler.batch(p.config)
	for {
		first, err := p.receiver.Next(fetching)
		if err != nil {
			return
		}
		p.deliver(p.gather(fetching, first, size))
	}
}

// gather adds to the first message those that are here, and for Linger those that come, up to the size of a batch.
func (p *Processor) gather(fetching context.Context, first *lease.Held, size int) []*lease.Held {
	held := []*lease.Held{first}
	linger := time.Now().Add(p.config.Linger)
	for len(held) < size {
		next, ok := p.receiver.TryNext()
		if !ok {
			wait := time.Until(linger)
			if wait <= 0 {
				break
			}
			ctx, cancel := context.WithTimeout(fetching, wait)
			var err error
			next, err = p.receiver.Next(ctx)
			cancel()
			if err != nil {
				break
			}
		}
		held = append(held, next)
	}
	return held
}

// abandoned returns the handlers that are still running, as an error.
func (p *Processor) abandoned() error {
	if left := p.running.list(); len(left) > 0 {
		return &AbandonedError{Deliveries: left}
	}
	return nil
}
