package queues

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/backing"
	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/ledger"
)

// reader gives the messages of one queue to its receivers. Its goroutine, run, is the only one that reads messages from
// the database; everybody else asks it by waking it.
type reader struct {
	queues *Queues
	db     *database
	queue  *backing.Queue
	ledger *ledger.Ledger
	log    logReader       // used by run only
	wake   chan struct{}   // holds one wake-up, so that they merge
	ctx    context.Context // ends with end
	cancel context.CancelFunc

	mu        sync.Mutex
	receivers []*receiver // in the order in which they are served next
	news      news
	changed   bool  // the schema may have
	paused    bool  // delivery is disabled
	ended     error // set by end, before ctx ends
}

func newReader(q *Queues, db *database, queue *backing.Queue) *reader {
	ctx, cancel := context.WithCancel(q.ctx)
	return &reader{
		queues: q,
		db:     db,
		queue:  queue,
		ledger: ledger.New(ledger.Config{LeaseLength: q.opts.LeaseLength, Redelivery: q.opts.Redelivery}),

		wake:   make(chan struct{}, 1),
		ctx:    ctx,
		cancel: cancel,
		// The schema may have changed since the queue was read, before anybody could tell this reader.
		changed: true,
	}
}

// startReader returns the queue's reader, which runs until the queue or the front ends.
func (q *Queues) startReader(db *database, queue *backing.Queue) (*reader, error) {
	return db.reader(queue, func() *reader {
		r := newReader(q, db, queue)
		q.wg.Go(r.run)
		return r
	})
}

// rouse wakes run. It does not block.
func (r *reader) rouse() {
	select {
	case r.wake <- struct{}{}:
	default: // it is awake, or about to be
	}
}

// tell notes what may be new. It does not block.
func (r *reader) tell(n news) {
	r.mu.Lock()
	r.news.add(n)
	r.mu.Unlock()
	r.rouse()
}

// schemaChanged makes run find out whether the queue is still the one it was.
func (r *reader) schemaChanged() {
	r.mu.Lock()
	r.changed = true
	r.mu.Unlock()
	r.rouse()
}

// end ends all receivers, present and coming, with the error, and then run.
func (r *reader) end(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended == nil {
		r.ended = err
	}
	r.cancel()
}

// err is what a receiver ends with once ctx has ended.
func (r *reader) err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended == nil { // the front's own context ended first
		return errClosed
	}
	return r.ended
}

// abortedPause is how long the reader waits after the emulator aborted its transaction.
const abortedPause = 5 * time.Millisecond

// run serves the receivers until the reader ends.
func (r *reader) run() {
	defer r.cancel()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-r.wake:
		case <-timer.C:
		}
		err := r.serve(r.ctx)
		pause := r.untilNext()
		switch {
		case err == nil:
		case status.Code(err) == codes.Aborted:
			pause = abortedPause
		default:
			r.fail(err)
		}
		timer.Reset(pause)
	}
}

// serve works until no receiver waits, or nothing is ready.
func (r *reader) serve(ctx context.Context) error {
	if gone, err := r.checkSchema(ctx); gone || err != nil {
		return err
	}
	for {
		again, err := r.turn(ctx)
		if err != nil || !again {
			return err
		}
	}
}

// untilNext is how long the reader may sleep unless it is woken. While no receiver waits, or delivery is disabled, that
// is for ever: the next one that asks wakes it, or the change of the schema.
func (r *reader) untilNext() time.Duration {
	const forEver = 1 << 62
	next, some := r.ledger.Next()
	if !some || !r.wanted() || !r.mayDeliver() {
		return forEver
	}
	return max(0, time.Until(next))
}

// checkSchema ends the reader if its queue is gone or is another one now, and obeys what an ALTER QUEUE said.
func (r *reader) checkSchema(ctx context.Context) (gone bool, err error) {
	r.mu.Lock()
	changed := r.changed
	r.mu.Unlock()
	if !changed {
		return false, nil
	}
	_, version := r.db.current()
	_, c, err := r.queues.catalogue(ctx, r.db.name)
	if err != nil {
		return false, err
	}
	now := c.find(r.queue.Name())
	if now == nil || !r.queue.SameMessages(now) {
		r.db.leave(r)
		r.end(status.Errorf(codes.NotFound, "Queue %s was dropped", r.queue.Name()))
		return true, nil
	}
	r.obey(now, version)
	return false, nil
}

// obey takes over the queue's options as they stood at a version of the schema, unless that has changed since.
func (r *reader) obey(now *backing.Queue, version int) {
	r.db.mu.Lock()
	defer r.db.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paused = now.Definition.Options.DisableDelivery
	r.changed = r.db.version != version
	if r.changed {
		r.rouse()
	}
}

// mayDeliver is false while delivery is disabled, and while it may have been: from the moment of a schema change until
// the reader has looked at it.
func (r *reader) mayDeliver() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.paused && !r.changed
}
