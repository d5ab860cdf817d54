package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"cloud.google.com/go/spanner"

	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
)

// double is a worker that does not use the library's processor, in its place. It takes what comes, some at a time.
type double struct {
	*worker
	queue    *queue.Queue
	handle   func(d *double, ctx context.Context, m *queue.Message) error
	received atomic.Int64
}

func doubles(handle func(*double, context.Context, *queue.Message) error) runners {
	return func(w *worker) ([]runner, error) {
		var all []runner
		for _, name := range queueNames {
			q, err := w.openQueue(w.client, name)
			if err != nil {
				return nil, err
			}
			all = append(all, &double{worker: w, queue: q, handle: handle})
		}
		return all, nil
	}
}

var (
	carelessly = doubles((*double).inOneTransaction)
	losing     = doubles((*double).acknowledgeFirst)
)

func (d *double) Figures() processor.Figures {
	f := processor.Figures{}
	f.Receiver.Received = d.received.Load()
	return f
}

// Run takes messages until ctx ends. What fails comes again when its lease has ended.
func (d *double) Run(ctx context.Context) error {
	const together = 4
	slots := make(chan struct{}, together)
	var all sync.WaitGroup
	defer all.Wait()
	for ctx.Err() == nil {
		for m, err := range d.queue.Receive(ctx, queue.ReceiveOptions{MaxBatch: together}) {
			if err != nil {
				break
			}
			d.received.Add(1)
			slots <- struct{}{}
			all.Go(func() {
				defer func() { <-slots }()
				defer d.at(m)()
				_ = d.handle(d, ctx, m)
			})
			if m.LastOfBatch {
				break
			}
		}
	}
	return nil
}

// inOneTransaction does everything right but one thing: the DELETE succeeds also when the message is gone. Now and then it
// is slow, so that its lease ends and somebody else has the message too; that is no mistake.
func (d *double) inOneTransaction(ctx context.Context, m *queue.Message) error {
	if d.chance(0.05) {
		_ = sleep(ctx, leaseLength*3/2)
	}
	return d.transact(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		if _, err := tx.Update(ctx, d.plainDelete(m)); err != nil {
			return err
		}
		return addOne(ctx, tx, []*queue.Message{m})
	})
}

// acknowledgeFirst asserts, and leaves a gap.
func (d *double) acknowledgeFirst(ctx context.Context, m *queue.Message) error {
	if err := d.transact(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error { return d.queue.Ack(ctx, tx, m) }); err != nil {
		return err
	}
	return d.transact(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		return addOne(ctx, tx, []*queue.Message{m})
	})
}

// transact runs a transaction with the tag that the faults look for.
func (d *double) transact(ctx context.Context, f func(context.Context, *spanner.ReadWriteTransaction) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*commitTimeout)
	defer cancel()
	_, err := d.client.ReadWriteTransactionWithOptions(ctx, f, spanner.TransactionOptions{TransactionTag: "queue=" + d.queue.Name()})
	return err
}

func (d *double) plainDelete(m *queue.Message) spanner.Statement {
	return spanner.Statement{
		SQL:    fmt.Sprintf("DELETE FROM %s WHERE Id = @id", d.queue.Name()),
		Params: map[string]any{"id": m.Key[0]},
	}
}
