package queue

import (
	"context"
	"fmt"

	"github.com/spanqueue/spanqueue/internal/backend"
)

// Stats is a queue's state at one moment.
//
//   - Ready counts the messages that are due, leased ones included.
//   - Delayed counts those whose DeliverTime is still to come.
//   - OldestAge is how long the oldest ready message has been due, by the database's clock; 0 when none is.
type Stats = backend.Stats

// Stats counts the messages by a strong read of the whole queue: its cost grows with the backlog.
func (q *Queue) Stats(ctx context.Context) (Stats, error) {
	s, err := q.backend.Stats(ctx)
	if err != nil {
		return Stats{}, fmt.Errorf("queue: stats of %s: %w", q.Name(), err)
	}
	return s, nil
}

// Peek returns up to n messages, those due first in front, without leasing them: their Lease is zero, and they cannot be
// renewed. Whoever acknowledges a peeked message races with its holder; the guard lets one of them win.
func (q *Queue) Peek(ctx context.Context, n int) ([]*Message, error) {
	if n < 1 {
		return nil, invalid("Peek of %d messages: it must be at least 1", n)
	}
	ds, err := q.backend.Peek(ctx, n)
	if err != nil {
		return nil, fmt.Errorf("queue: peek at %s: %w", q.Name(), err)
	}
	messages := make([]*Message, len(ds))
	for i, d := range ds {
		m := q.message(d)
		m.claim, m.Lease = d.Token, Lease{} // enough to compete with the holder, nothing to renew it by
		messages[i] = m
	}
	return messages, nil
}

// purgeChunk is how many messages one transaction of Purge removes.
const purgeChunk = 1000

// Purge removes every message that is in the queue, leased or not, in transactions of up to 1,000, and returns how many
// it removed, also when it fails half way. A message that a handler is at work on is taken away from it: the handler's
// transaction does not commit. Messages sent while it runs may stay.
func (q *Queue) Purge(ctx context.Context) (int, error) {
	total := 0
	for {
		n, err := q.backend.Purge(ctx, purgeChunk)
		total += n
		if err != nil {
			return total, fmt.Errorf("queue: purge of %s, after %d messages: %w", q.Name(), total, err)
		}
		if n < purgeChunk {
			return total, nil
		}
	}
}
