package lease

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/spanqueue/spanqueue/queue"
)

// keeper renews what the book says is due. Its loop is the only place where renewals are planned; each call has a
// goroutine of its own while it lasts, so that a slow one holds up no other.
type keeper struct {
	queue *queue.Queue
	book  *book
	tell  func(level slog.Level, text string, attrs ...slog.Attr)

	failing trouble // of calls
	calls   sync.WaitGroup
	done    chan answer
}

func newKeeper(q *queue.Queue, b *book, tell func(level slog.Level, text string, attrs ...slog.Attr)) *keeper {
	return &keeper{queue: q, book: b, tell: tell, done: make(chan answer), failing: trouble{
		tell: tell,
		text: "leases could not be renewed; they are tried again while they may live",
		over: "leases are renewed again",
	}}
}

// answer says that a call has ended.
type answer struct {
	call *call
	ok   bool
}

// run keeps leases until the book is stopped and nothing is held any more. It returns when all its calls have ended.
func (k *keeper) run(lasting context.Context) {
	ctx, cancel := context.WithCancel(lasting)
	defer k.calls.Wait()
	defer cancel()
	giver := newGiver(lasting, k.queue.Backend(), k.tell)
	defer giver.close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	traffic := traffic{terms: k.book.terms, underWay: make(map[*call]time.Time)}
	for {
		now := k.book.clock.now()
		room, moreRoom, mayConfirm := traffic.room(now)
		p := k.book.plan(now, allowed{calls: room, confirm: mayConfirm, usual: traffic.usual})
		k.carryOut(p)
		for _, c := range p.calls {
			traffic.sent(c, now)
			k.calls.Go(func() { k.renew(ctx, c) })
		}
		giver.give(p.letGo)
		if p.ended {
			return
		}
		next := p.next
		switch {
		case p.more:
			_, next, _ = traffic.room(now) // what is due has to wait, and everything else may as long
		case p.asking:
			next = earliest(next, moreRoom)
		}
		if p.holds {
			next = earliest(next, now.Add(k.book.terms.look()))
		}
		if next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(k.book.clock.until(next))
		}
		select {
		case <-timer.C:
		case <-k.book.wake:
		case a := <-k.done:
			traffic.answered(a.call, a.ok, k.book.clock.now())
		}
	}
}

func (k *keeper) carryOut(p plan) {
	for _, end := range p.ends {
		end.tell()
		if end.cause == ErrLost && !end.quiet {
			k.tell(slog.LevelWarn, "a lease has ended while its message was being worked on; somebody else may have it now",
				slog.String("message", end.message.String()))
		}
	}
}

// renew makes one call. It is bounded by what it protects: Google's client executes a query again and again, for as long
// as it is let.
func (k *keeper) renew(ctx context.Context, c *call) {
	sent := k.book.clock.now()
	callCtx, cancel := context.WithTimeoutCause(ctx, c.until.Sub(sent), errNoAnswer)
	defer cancel()
	renewals, err := k.queue.Renew(callCtx, c.leases...)
	k.book.answered(c, sent, renewals, err)
	switch {
	case err == nil:
		k.failing.worked()
	case ctx.Err() == nil:
		if callCtx.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(callCtx), err)
		}
		k.failing.failed(time.Now(), err, slog.Int("leases", len(c.leases)))
	}
	select {
	case k.done <- answer{c, err == nil}:
	case <-ctx.Done():
	}
}
