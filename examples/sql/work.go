package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuesql"
)

// grant adds the points of an order to its customer's. It adds: done twice, it would show. It may be called twice for one
// message, but it takes effect once, in the commit that takes the message from the queue.
func grant(ctx context.Context, tx *sql.Tx, m *queue.Message) error {
	var e event
	if err := json.Unmarshal(m.Payload, &e); err != nil {
		return processor.DeadLetter(fmt.Errorf("%w: %w", processor.ErrUndecodable, err))
	}
	var points int64
	err := tx.QueryRowContext(ctx, "SELECT Points FROM Customers WHERE Customer = @customer", sql.Named("customer", e.Customer)).Scan(&points)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT OR UPDATE INTO Customers (Customer, Points) VALUES (@customer, @points)",
		sql.Named("customer", e.Customer), sql.Named("points", points+e.Cents/100))
	return err
}

// workUntilDone handles the messages until none is left, and returns how often grant was called for that.
func (s shop) workUntilDone(ctx context.Context) (calls int64, err error) {
	var counted atomic.Int64
	p, err := processor.New(s.queue, queuesql.Handler(s.db, func(ctx context.Context, tx *sql.Tx, m *queue.Message) error {
		counted.Add(1)
		return grant(ctx, tx, m)
	}), processor.Config{Concurrency: 1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return 0, err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- p.Run(running) }()
	err = s.untilEmpty(ctx)
	stop()
	return counted.Load(), errors.Join(err, <-ended)
}

// untilEmpty waits until the queue has no message. A worker of yours runs until it is stopped.
func (s shop) untilEmpty(ctx context.Context) error {
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		stats, err := s.queue.Stats(ctx)
		if err != nil || stats.Ready+stats.Delayed == 0 {
			return err
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
