package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"

	"cloud.google.com/go/spanner"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/queue"
)

// unprotected is a worker as it is often written: it takes the message away by a plain DELETE, which succeeds whether or
// not the message is still there, and it keeps no receipt. It runs under the same faults.
type unprotected struct {
	client   *spanner.Client
	queue    *queue.Queue
	log      *slog.Logger
	received atomic.Int64
}

func unprotectedWorker(db *database, log *slog.Logger) (worker, error) {
	return &unprotected{client: db.client, queue: db.queue, log: log}, nil
}

func (u *unprotected) figures() figures {
	return figures{deliveries: u.received.Load()}
}

// Run takes as many messages as it handles at a time, handles them, and comes back for more.
func (u *unprotected) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		var batch sync.WaitGroup
		for _, m := range u.take(ctx) {
			batch.Go(func() { u.handle(ctx, m) })
		}
		batch.Wait()
	}
	return nil
}

func (u *unprotected) take(ctx context.Context) []*queue.Message {
	var taken []*queue.Message
	for m, err := range u.queue.Receive(ctx, queue.ReceiveOptions{MaxBatch: concurrency}) {
		if err != nil {
			u.log.Warn("receive", "error", err)
			break
		}
		u.received.Add(1)
		taken = append(taken, m)
		if m.LastOfBatch || len(taken) == concurrency {
			break
		}
	}
	return taken
}

// handle grants the points. What failed comes again when its lease has ended.
func (u *unprotected) handle(ctx context.Context, m *queue.Message) {
	var g grant
	if err := json.Unmarshal(m.Payload, &g); err != nil {
		u.log.Warn("a payload that is no grant", "error", err)
		return
	}
	grantOnce := func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		if _, err := tx.Update(ctx, plainDelete(g.operation)); err != nil {
			return err
		}
		if flaw := g.flaw(); flaw != "" {
			return write(tx, refusedAnswer(g, flaw))
		}
		balance, err := addPoints(ctx, tx, g)
		if spanner.ErrCode(err) == codes.OutOfRange {
			return write(tx, refusedAnswer(g, "more than the balance can hold"))
		}
		if err != nil {
			return err
		}
		return write(tx, grantedAnswer(g, balance))
	}
	// The tag makes the transactions meet the same faults.
	options := spanner.TransactionOptions{TransactionTag: workTag}
	if _, err := u.client.ReadWriteTransactionWithOptions(ctx, grantOnce, options); err != nil {
		u.log.Warn("a grant has failed", "error", err)
	}
}

// plainDelete is what the queue's documentation warns of.
func plainDelete(o operation) spanner.Statement {
	return spanner.Statement{
		SQL:    "DELETE FROM Purchases WHERE Account = @account AND OrderId = @order AND Kind = @kind",
		Params: map[string]any{"account": o.Account, "order": o.Order, "kind": o.Kind},
	}
}
