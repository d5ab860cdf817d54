package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"
)

// result is all that is known when a run is over.
type result struct {
	options options
	took    time.Duration
	verdict verdict

	crew       *crew
	producers  *producers
	chaos      *chaos
	faults     *faults
	recoveries *recoveries
	figures    figures
	most       int // messages in the queues
}

// drainLimit is how long it may take to handle what is in the queues when the trouble is over.
const drainLimit = 2 * time.Minute

// play is the whole run.
func play(ctx context.Context, o options, hire hire, out, errOut io.Writer) (r *result, err error) {
	log := slog.New(slog.DiscardHandler)
	said := &tail{}
	workersErr := io.Writer(said)
	if o.verbose {
		log = slog.New(slog.NewTextHandler(errOut, nil))
		workersErr = errOut
	}
	defer func() {
		if err != nil && ctx.Err() == nil && !o.verbose {
			err = fmt.Errorf("%w\nthe workers' last words:\n%s", err, said)
		}
	}()
	db, err := openDatabase(ctx, o.setting, log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	r = &result{options: o, recoveries: newRecoveries()}
	r.producers = newProducers(o.setting, o.seed)
	defer r.producers.close()
	if err := r.producers.connect(ctx, db.name, db.emulator.ClientOptions()...); err != nil {
		return nil, err
	}
	crew := newCrew(job{setting: o.setting, Addr: db.emulator.Addr(), Database: db.name, Seed: o.seed}, hire, r.recoveries.came, workersErr)
	r.crew = crew
	r.chaos = &chaos{crew: crew, recoveries: r.recoveries, pause: db.pauser(), seed: o.seed}
	defer func() { err = errors.Join(err, crew.stop(ctx)) }() // again, if it was stopped before, which does nothing
	for range o.workers {
		if err := crew.start(); err != nil {
			return nil, err
		}
	}
	if err := crew.ready(ctx); err != nil {
		return nil, err
	}
	r.faults = &faults{}
	if !o.bare() {
		r.faults = inject(db.emulator.Front().Faults(), o.setting, o.seed)
	}

	began := time.Now()
	if err := r.work(ctx, db, &progress{out: out, result: r, began: began}); err != nil {
		return nil, err
	}
	r.took = time.Since(began)
	if err := crew.stop(ctx); err != nil { // what they do as they stop is judged too
		return nil, err
	}
	r.figures = crew.figures()
	found, err := r.find(ctx, db)
	if err != nil {
		return nil, err
	}
	r.verdict = judge(found)
	r.verdict.judgeRun(o.duration, r.most, r.chaos, r.faults, r.figures)
	return r, nil
}

// work lets producers, workers and chaos go on for as long as was asked for, and then lets the workers finish in peace.
// When it returns, all that it started has ended.
func (r *result) work(ctx context.Context, db *database, show *progress) error {
	lasting, cancel := context.WithCancel(ctx)
	trouble, peace := context.WithTimeout(lasting, r.options.duration)
	sending := make(chan error, 1)
	go func() { sending <- r.producers.run(trouble) }()
	failing := make(chan error, 1)
	go func() { failing <- r.chaos.run(trouble) }()
	over := 2
	defer func() {
		peace()
		cancel()
		for range over {
			select {
			case <-sending:
			case <-failing:
			}
		}
	}()

	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var giveUp <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case p := <-r.crew.gone:
			return fmt.Errorf("a worker has ended by itself: %w", p.failure())
		case err := <-sending:
			over--
			sending = nil
			if err != nil {
				return fmt.Errorf("producer: %w", err)
			}
		case err := <-failing:
			over--
			failing = nil
			if err != nil {
				return fmt.Errorf("chaos: %w", err)
			}
			r.faults.remove()
		case <-giveUp:
			return nil // what is left is for the verdict
		case <-look.C:
			left, err := r.look(lasting, db)
			if err != nil {
				return err
			}
			show.line(left)
			if over == 0 && left == 0 {
				return nil
			}
		}
		if over == 0 && giveUp == nil {
			giveUp = time.After(drainLimit)
		}
	}
}

// look looks into the queues, and returns how many messages there are.
func (r *result) look(ctx context.Context, db *database) (int, error) {
	began := time.Now()
	queued := make(map[string]bool)
	for _, name := range queueNames {
		seen := r.producers.rooms[name].look()
		ids, err := db.ids(ctx, name)
		if err != nil {
			return 0, err
		}
		seen(len(ids))
		for _, id := range ids {
			queued[id] = true
		}
	}
	r.recoveries.look(began, queued, time.Now())
	r.most = max(r.most, len(queued))
	return len(queued), nil
}

// find reads what stands in the database.
func (r *result) find(ctx context.Context, db *database) (findings, error) {
	f := findings{sent: r.producers.sent}
	var err error
	if f.effects, err = db.effects(ctx); err != nil {
		return f, err
	}
	if f.noted, err = db.ids(ctx, "Sent"); err != nil {
		return f, err
	}
	for _, name := range queueNames {
		left, err := db.ids(ctx, name)
		if err != nil {
			return f, err
		}
		dead, err := db.ids(ctx, name+"DeadLetters")
		if err != nil {
			return f, err
		}
		f.left, f.dead = append(f.left, left...), append(f.dead, dead...)
	}
	return f, nil
}
