package lease

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/queue"
)

// givePatience is how long the end of Run waits for messages to be given back, from when that was begun.
const givePatience = time.Second

// giver makes messages that were let go available to others before their leases end, where the queue can do that. When the
// database does not answer they wait out their leases, and nobody waits for that. It is owned by the keeper's loop.
type giver struct {
	queue  backend.Releaser // nil: it cannot take them back
	length time.Duration    // of a lease
	tell   func(level slog.Level, text string, attrs ...slog.Attr)

	ctx   context.Context
	end   context.CancelFunc
	calls sync.WaitGroup
	begun time.Time // of the last call
}

func newGiver(ctx context.Context, q backend.Queue, tell func(level slog.Level, text string, attrs ...slog.Attr)) *giver {
	g := &giver{length: q.LeaseLength(), tell: tell}
	g.queue, _ = q.(backend.Releaser)
	g.ctx, g.end = context.WithCancel(ctx)
	return g
}

// give begins to give the messages back.
func (g *giver) give(messages []*queue.Message) {
	if g.queue == nil || len(messages) == 0 {
		return
	}
	g.begun = time.Now()
	g.calls.Go(func() {
		ctx, cancel := context.WithTimeout(g.ctx, g.length)
		defer cancel()
		deliveries := make([]backend.Delivery, len(messages))
		for i, m := range messages {
			deliveries[i] = m.Delivery()
		}
		if err := g.queue.Release(ctx, deliveries); err != nil {
			g.tell(slog.LevelInfo, "messages that were let go could not be given back; they come again when their leases end",
				slog.Int("messages", len(messages)), slog.Any("error", err))
		}
	})
}

// close waits for the calls that are under way, and ends those that take too long.
func (g *giver) close() {
	hurry := time.AfterFunc(time.Until(g.begun.Add(givePatience)), g.end)
	g.calls.Wait()
	hurry.Stop()
	g.end()
}
