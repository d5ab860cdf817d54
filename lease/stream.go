package lease

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/queue"
	"google.golang.org/grpc/codes"
)

const (
	// shortDuration is how long a stream stays open that is to bring few messages.
	shortDuration = 5 * time.Second
	// slack is how long a stream may outlast its MaxDuration before it is given up as broken.
	slack = 10 * time.Second

	// Pauses after a stream that failed. A server that has had enough gets more time.
	firstPause     = 100 * time.Millisecond
	firstFullPause = time.Second
	maxPause       = 10 * time.Second
)

var (
	errNoAnswer = errors.New("lease: the renewal was not answered while the leases lived")
	errStalled  = errors.New("lease: the receive stream did not end when its time was over, and was given up")
)

// stream receives: it opens a stream while messages are wanted, and writes what comes into the book.
type stream struct {
	queue *queue.Queue
	book  *book

	failing trouble
}

func newStream(q *queue.Queue, b *book, tell func(level slog.Level, text string, attrs ...slog.Attr)) *stream {
	return &stream{queue: q, book: b, failing: trouble{
		tell: tell,
		text: "a receive stream has failed and is opened again",
		over: "receive streams work again",
	}}
}

// run opens one stream after the other until ctx ends. No error ends it.
func (s *stream) run(ctx context.Context) {
	failures := 0
	for {
		m, ok := s.book.wanted(ctx)
		if !ok {
			return
		}
		progress, err := s.receive(ctx, m)
		if ctx.Err() != nil {
			return
		}
		if progress {
			failures = 0
		}
		if err == nil && progress {
			s.failing.worked()
			continue
		}
		failures++
		pause := pauseAfter(failures, spanner.ErrCode(err) == codes.ResourceExhausted, random())
		if err != nil {
			s.failing.failed(time.Now(), err, slog.Duration("after", pause))
		}
		if !sleep(ctx, pause) {
			return
		}
	}
}

// receive opens one stream and takes all that it brings, at once, until it ends or enough is here. It reports
// whether the stream did what it should: it brought something, or stayed open, or was closed by us.
func (s *stream) receive(run context.Context, m marks) (progress bool, err error) {
	duration := s.duration(m)
	opened := time.Now()
	ctx, stop := context.WithTimeoutCause(run, duration+slack, errStalled)
	defer stop()
	ctx, closeStream := context.WithCancel(ctx)
	defer closeStream()
	s.book.opened(closeStream)
	var rows lag
	for message, err := range s.queue.Receive(ctx, queue.ReceiveOptions{MaxDuration: duration, MaxBatch: m.batch}) {
		if err != nil {
			if run.Err() != nil {
				err = nil // it ended because Run does
			}
			if s.book.closed(err) || err == nil {
				return true, nil
			}
			if cause := context.Cause(ctx); cause == errStalled {
				err = errors.Join(cause, err)
			}
			return progress, err
		}
		if !progress {
			s.failing.worked()
		}
		progress = true
		behind := rows.of(s.book.clock.now(), message.Lease.End, s.book.terms.length*3/4)
		s.book.arrived(message, behind)
		if ctx.Err() != nil {
			break
		}
	}
	if s.book.closed(nil) {
		return true, nil
	}
	return progress || time.Since(opened) >= duration/2, nil
}

// duration takes a random tenth off, so that the streams of many workers do not end together.
func (s *stream) duration(m marks) time.Duration {
	d := s.book.config.MaxDuration
	if m.short {
		d = min(d, shortDuration)
	}
	return max(d-time.Duration(random()*float64(d)/10), time.Second)
}

// pauseAfter doubles from failure to failure up to a bound; the upper half is random.
func pauseAfter(failures int, full bool, random float64) time.Duration {
	d := firstPause
	if full {
		d = firstFullPause
	}
	for i := 1; i < failures && d < maxPause; i++ {
		d *= 2
	}
	d = min(d, maxPause)
	return d/2 + time.Duration(random*float64(d/2))
}

// sleep reports false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
