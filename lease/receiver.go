package lease

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanqueue/spanqueue/internal/aside"
	"github.com/spanqueue/spanqueue/internal/boottime"
	"github.com/spanqueue/spanqueue/queue"
)

// Receiver takes messages from a queue, keeps their leases, and hands them out. Make one with NewReceiver, run it once
// with Run.
type Receiver struct {
	queue  *queue.Queue
	config Config
	book   *book
	ran    atomic.Bool
}

// NewReceiver makes a receiver of the queue's messages. It sends nothing. A configuration that makes no sense is refused
// by the name of its field, with an error that wraps ErrInvalid.
func NewReceiver(q *queue.Queue, config Config) (*Receiver, error) {
	if q == nil {
		return nil, invalid("the queue is nil")
	}
	length := q.Backend().LeaseLength()
	config = config.withDefaults(length)
	if err := config.validate(length); err != nil {
		return nil, err
	}
	return &Receiver{
		queue:  q,
		config: config,
		book:   newBook(terms{length: length, margin: config.Margin}, config, clock{boottime.Suspended}),
	}, nil
}

const (
	// logDepth is how many lines may wait for a slow logger.
	logDepth = 64
	// logPatience is how long the end of Run waits for a logger that blocks.
	logPatience = time.Second
)

// Run receives until ctx ends. Then it takes nothing new and lets go of what was not handed out; it goes on renewing what
// was, until every Held has been released, and returns nil when everything that it started has ended. Troubles of the
// database do not end it. A second Run returns ErrRunning.
func (r *Receiver) Run(ctx context.Context) error {
	if !r.ran.CompareAndSwap(false, true) {
		return ErrRunning
	}
	logs := aside.New(logDepth)
	defer logs.Close(logPatience)
	tell := func(level slog.Level, text string, attrs ...slog.Attr) {
		attrs = append(attrs, slog.String("queue", r.queue.Name()))
		logs.Do(func() { r.config.Logger.LogAttrs(context.Background(), level, "spanqueue: "+text, attrs...) })
	}
	k := newKeeper(r.queue, r.book, tell)
	s := newStream(r.queue, r.book, tell)
	var loops sync.WaitGroup
	loops.Go(func() { k.run(context.WithoutCancel(ctx)) })
	loops.Go(func() { s.run(ctx) })
	<-ctx.Done()
	r.book.stop()
	loops.Wait()
	return nil
}

// Next waits for the next message that is worth starting. It is called for every free slot: the calls that wait are the
// demand by which the receiver takes messages. It returns ErrStopped once Run's context has ended, and the cause of ctx's
// end. A message that it returns must be released.
func (r *Receiver) Next(ctx context.Context) (*Held, error) {
	e, err := r.book.take(ctx)
	if err != nil {
		return nil, err
	}
	return &Held{receiver: r, entry: e}, nil
}

// Stats returns figures. It may be called at any time.
func (r *Receiver) Stats() Stats { return r.book.figures() }
