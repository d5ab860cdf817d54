package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
)

// A message that is sent in a transaction is there if that transaction commits, and only then.
func ExampleQueue_SendMutation() {
	ctx := context.Background()
	client, tearDown := setUp(ctx)
	defer tearDown()
	q, err := queue.New(client, orders)
	check(err)

	for _, paid := range []bool{false, true} {
		_, err := client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			send, err := q.SendMutation(queue.Outgoing{Key: spanner.Key{"order-1"}, Payload: []byte("2 apples")})
			if err != nil {
				return err
			}
			if err := tx.BufferWrite([]*spanner.Mutation{send}); err != nil {
				return err
			}
			if !paid {
				return errors.New("not paid")
			}
			return nil
		})
		stats, _ := q.Stats(ctx)
		fmt.Println(err, "- messages:", stats.Ready)
	}
	// Output:
	// not paid - messages: 0
	// <nil> - messages: 1
}

// A loop of one's own: the acknowledgement and the work are one commit.
func ExampleQueue_Receive() {
	ctx := context.Background()
	client, tearDown := setUp(ctx)
	defer tearDown()
	q, err := queue.New(client, orders)
	check(err)
	check(q.Send(ctx, []queue.Outgoing{{Key: spanner.Key{"order-1"}, Payload: []byte("Elm Street 1")}}))

	// A program that runs for long opens the next stream when this one has ended, and renews leases while it works; package
	// processor does both.
	for m, err := range q.Receive(ctx, queue.ReceiveOptions{MaxDuration: time.Second}) {
		check(err)
		_, err = client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			if err := q.Ack(ctx, tx, m); err != nil {
				return err // queue.ErrNotHeld: somebody else has done it, and nothing of this is kept
			}
			return tx.BufferWrite([]*spanner.Mutation{ship(m.Key[0].(string), string(m.Payload))})
		})
		if err != nil && !errors.Is(err, queue.ErrNotHeld) {
			check(err)
		}
	}
	stats, err := q.Stats(ctx)
	check(err)
	fmt.Println("shipments:", shipments(ctx, client), "messages:", stats.Ready)
	// Output: shipments: 1 messages: 0
}

// A transaction that is held by hand must be rolled back after a miss. One that is committed all the same fails.
func ExampleQueue_Ack_heldByHand() {
	ctx := context.Background()
	client, tearDown := setUp(ctx)
	defer tearDown()
	q, err := queue.New(client, orders)
	check(err)
	check(q.Send(ctx, []queue.Outgoing{{Key: spanner.Key{"order-1"}, Payload: []byte("Elm Street 1")}}))
	seen, err := q.Peek(ctx, 1)
	check(err)
	m := seen[0]

	for range 2 { // the second time the message is gone, as when another worker was faster
		tx, err := spanner.NewReadWriteStmtBasedTransaction(ctx, client)
		check(err)
		check(tx.BufferWrite([]*spanner.Mutation{ship(m.Key[0].(string), string(m.Payload))}))
		if err := q.Ack(ctx, tx, m); err != nil {
			tx.Rollback(ctx)
			fmt.Println("rolled back, not held:", errors.Is(err, queue.ErrNotHeld))
			continue
		}
		_, err = tx.Commit(ctx)
		check(err)
		fmt.Println("committed")
	}
	fmt.Println("shipments:", shipments(ctx, client))
	// Output:
	// committed
	// rolled back, not held: true
	// shipments: 1
}

// A message that its handler gave up is looked at, and sent again when the cause is mended.
func ExampleDeadLetters_Redrive() {
	ctx := context.Background()
	client, tearDown := setUp(ctx)
	defer tearDown()
	q, err := queue.New(client, orders)
	check(err)
	check(q.Send(ctx, []queue.Outgoing{{Key: spanner.Key{"order-1"}, Payload: []byte("Elm Street 1")}}))
	run, stop := context.WithCancel(ctx)
	p, err := processor.New(q, processor.Tx(func(context.Context, *spanner.ReadWriteTransaction, *queue.Message) error {
		stop()
		return errors.New("no such street")
	}), processor.Config{MaxAttempts: 1, Logger: slog.New(slog.DiscardHandler)})
	check(err)
	check(p.Run(run))

	letters, err := q.DeadLetters().List(ctx, queue.DeadLetterFilter{Error: "street"}, nil, 100)
	check(err)
	for _, l := range letters {
		fmt.Printf("%v %s: %s\n", l.Key, l.Reason, l.Error)
		check(q.DeadLetters().Redrive(ctx, l.Key, l.DeadAt))
	}
	stats, err := q.Stats(ctx)
	check(err)
	fmt.Println("messages:", stats.Ready)
	// Output:
	// ("order-1") attempts: no such street
	// messages: 1
}
