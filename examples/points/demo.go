package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"cloud.google.com/go/spanner"
)

// result is all that is known when a run is over.
type result struct {
	data     data
	expected expectation
	ledger   ledger
	verdict  verdict
	took     time.Duration

	figures     figures // what the workers say
	aborts      int     // transactions that the database aborted, as it says
	lostAnswers int     // commits that it left without an answer
	sent        int     // messages; a second one that met the first in the queue is counted, and became none
}

// timeLimit ends a run that does not come to its end by itself.
const timeLimit = 3 * time.Minute

// play is the whole run.
func play(ctx context.Context, o options, hire newWorker, out io.Writer, log *slog.Logger) (r *result, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeLimit, fmt.Errorf("not done within %v", timeLimit))
	defer cancel()
	r = &result{}
	if r.data, err = readData(o.orders); err != nil {
		return nil, err
	}
	r.expected = expect(r.data)

	db, err := openDatabase(ctx, r.data.opening, log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	d := &demo{
		db:       db,
		producer: newProducer(db, r.data, r.expected, o.seed),
		crew:     newCrew(func() (worker, error) { return hire(db, log) }),
		faults:   inject(db.faults(), o.seed),
		progress: newProgress(out),
	}
	printOpening(out, o, r, d)

	began := time.Now()
	if err := d.work(ctx, o.workers); err != nil {
		return nil, err
	}
	r.took = time.Since(began)
	r.figures = d.crew.figures()
	r.aborts = d.faults.aborted.Applied()
	r.lostAnswers = d.faults.lostAnswers()
	r.sent = int(d.producer.messages.Load())

	if r.ledger, err = readLedger(ctx, db, r.data.grants); err != nil {
		return nil, err
	}
	r.verdict = judge(r.expected, r.ledger, d.producer)
	return r, nil
}

// demo is who takes part in a run.
type demo struct {
	db       *database
	producer *producer
	crew     *crew
	faults   faults
	progress *progress
}

// work lets the producer send and the workers work until all is done. When it returns, all that it started has ended.
func (d *demo) work(ctx context.Context, workers int) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	sent := make(chan error, 1)
	var producing sync.WaitGroup
	producing.Go(func() { sent <- d.producer.run(ctx) })
	defer func() {
		cancel()
		producing.Wait()
		err = errors.Join(err, d.crew.stop())
		d.progress.clear()
	}()
	for range workers {
		if err := d.crew.start(ctx); err != nil {
			return err
		}
	}
	return d.watch(ctx, sent)
}

const lookEvery = 200 * time.Millisecond

// watch returns when everything has been sent and the queue is empty. Half way it replaces a worker.
func (d *demo) watch(ctx context.Context, sent <-chan error) error {
	allSent, replaced := false, false
	total := d.producer.total()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-sent:
			if err != nil {
				return fmt.Errorf("producer: %w", err)
			}
			allSent = true
		case m := <-d.crew.gone:
			return errors.Join(errors.New("a worker has ended by itself"), m.stop())
		case <-tick.C:
		}
		answered, left, err := d.look(ctx)
		if err != nil {
			return err
		}
		d.progress.show(fmt.Sprintf("sent %d of %d, answered %d, in the queue %d; %d aborts, %d answers lost",
			d.producer.messages.Load(), total, answered, left, d.faults.aborted.Applied(), d.faults.lostAnswers()))
		if !replaced && answered >= int64(total/2) {
			if err := d.crew.replaceFirst(ctx); err != nil {
				return err
			}
			replaced = true
			d.progress.note("half way: a worker is stopped, and another takes its place")
		}
		if allSent && left == 0 {
			return nil
		}
	}
}

// look counts the messages that have been answered and those that are still in the queue.
func (d *demo) look(ctx context.Context) (answered, left int64, err error) {
	stats, err := d.db.queue.Stats(ctx)
	if err != nil {
		return 0, 0, err
	}
	count := d.db.client.Single().Query(ctx, spanner.NewStatement("SELECT COUNT(*) FROM Answers"))
	err = count.Do(func(row *spanner.Row) error { return row.Column(0, &answered) })
	return answered, stats.Ready + stats.Delayed, err
}
