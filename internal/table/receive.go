package table

import (
	"context"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/spanqueue/spanqueue/internal/backend"
)

// defaultBatch is how many messages a claim takes when the receiver does not say.
const defaultBatch = 20

// releaseTimeout bounds the giving back of what a receiver did not take.
const releaseTimeout = 5 * time.Second

// Receive implements backend.Queue: it claims and yields, batch after batch, until MaxDuration is over. The next batch is
// claimed when the last message of the one before has been taken. What is claimed and not taken is given back: when the
// loop is left, and when it took so long over a batch that half the lease of the rest has passed.
func (q *Queue) Receive(ctx context.Context, r backend.ReceiveRequest) iter.Seq2[backend.Delivery, error] {
	return func(yield func(backend.Delivery, error) bool) {
		// Not a deadline of a context: a call that it ended would look as if the database had failed.
		s := &stream{
			queue:   q,
			end:     time.Now().Add(r.MaxDuration),
			batch:   r.MaxBatch,
			pace:    pace{bound: q.options.PollInterval},
			sleeper: process.join(q.name),
		}
		defer s.sleeper.leave()
		if s.batch == 0 {
			s.batch = defaultBatch
		}
		for !s.over() {
			batch, err := s.next(ctx)
			switch {
			case ctx.Err() != nil:
				q.giveBack(ctx, batch.granted)
				yield(backend.Delivery{}, context.Cause(ctx))
				return
			case err != nil:
				yield(backend.Delivery{}, err)
				return
			case !s.hand(ctx, batch, yield):
				return
			}
		}
	}
}

// stream is one running Receive.
type stream struct {
	queue   *Queue
	end     time.Time
	batch   int
	pace    pace
	quiet   bool // the last look found nothing
	sleeper *sleeper
}

// batch is what one try has brought.
type batch struct {
	seen  sight
	tried int // how many candidates were to be claimed
	claimed
}

func (s *stream) over() bool { return !time.Now().Before(s.end) }

// next waits for a claim that is granted something. It returns an empty batch when the time is over, or ctx has ended.
func (s *stream) next(ctx context.Context) (batch, error) {
	for ctx.Err() == nil && !s.over() {
		b, err := s.try(ctx)
		if err != nil {
			return batch{}, err
		}
		if len(b.granted) > 0 {
			s.pace.found()
			return b, nil
		}
		if b.parked > 0 {
			continue // what comes after those that had to wait
		}
		// Nothing was there, or others have taken it all. They may take the next ones too: pauses are of random length.
		s.sleep(ctx, b.seen)
	}
	return batch{}, nil
}

// try looks once, and claims what it sees.
func (s *stream) try(ctx context.Context) (b batch, err error) {
	if b.seen, err = s.queue.look(ctx, s.batch, s.quiet); err != nil {
		return b, err
	}
	s.quiet = len(b.seen.due) == 0
	if s.quiet {
		return b, nil
	}
	chosen := s.queue.choose(b.seen.due, s.batch, rand.Float64())
	b.tried = len(chosen)
	if b.claimed, err = s.queue.claim(ctx, chosen, b.seen.past); err != nil {
		return b, err
	}
	s.queue.crowd.met(b.tried, b.lost)
	return b, nil
}

// sleep waits until it is worth to look again.
func (s *stream) sleep(ctx context.Context, seen sight) {
	pause := s.pace.pause(seen.next.Sub(seen.past), !seen.next.IsZero(), rand.Float64())
	if s.sleeper.sleep(ctx.Done(), min(pause, time.Until(s.end))) {
		s.pace.found()
	}
}

// hand yields the batch, and reports whether the receiver wants more.
func (s *stream) hand(ctx context.Context, b batch, yield func(backend.Delivery, error) bool) bool {
	for i, d := range b.granted {
		if time.Since(b.asked) > s.queue.options.LeaseLength/2 {
			s.queue.giveBack(ctx, b.granted[i:])
			return true
		}
		if !yield(d, nil) {
			s.queue.giveBack(ctx, b.granted[i+1:])
			return false
		}
	}
	return true
}

// giveBack releases what nobody has seen. That it fails is no matter: it comes back when its leases end.
func (q *Queue) giveBack(ctx context.Context, ds []backend.Delivery) {
	if len(ds) == 0 {
		return
	}
	ctx, cancel := lasting(ctx, releaseTimeout)
	defer cancel()
	_ = q.Release(ctx, ds)
}
