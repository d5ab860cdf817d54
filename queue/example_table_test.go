package queue_test

import (
	"context"
	"fmt"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/schema"
)

// A queue on an ordinary table, for every edition of Spanner. The messages of one account are handled one at a time and in
// their order, since the account is the first column of the key; express ones go before the others.
func ExampleNewTable() {
	ctx := context.Background()
	transfers := schema.QueueTable{
		Queue: schema.Queue{
			Name: "Transfers",
			KeyColumns: []schema.Column{
				{Name: "Account", Type: schema.String(36), NotNull: true},
				{Name: "Id", Type: schema.String(36), NotNull: true},
			},
			Payload: schema.String(schema.Max),
		},
		Priorities:   2,
		OrderColumns: 1,
	}
	// Your program creates them by schema.Apply.
	client, tearDown := setUp(ctx, transfers, schema.DeadLetters{Queue: transfers.Queue, Priorities: transfers.Priorities})
	defer tearDown()
	q, err := queue.NewTable(client, transfers)
	check(err)

	const express, normal = 0, 1
	check(q.Send(ctx, []queue.Outgoing{
		{Key: spanner.Key{"ada", "t1"}, Payload: []byte("12.00"), Priority: normal},
		{Key: spanner.Key{"ada", "t2"}, Payload: []byte("7.50"), Priority: normal},
		{Key: spanner.Key{"bob", "t3"}, Payload: []byte("99.00"), Priority: express},
	}))
	// Most programs give q to a processor, as they would a Spanner queue. This one has a loop of its own.
	left := 3
	for m, err := range q.Receive(ctx, queue.ReceiveOptions{}) {
		check(err)
		_, err = client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			if err := q.Ack(ctx, tx, m); err != nil {
				return err
			}
			id, _ := m.Column("Id")
			return tx.BufferWrite([]*spanner.Mutation{ship(id.(string), string(m.Payload))})
		})
		check(err)
		fmt.Println(m.Key, string(m.Payload))
		if left--; left == 0 {
			break
		}
	}
	// Output:
	// ("bob","t3") 99.00
	// ("ada","t1") 12.00
	// ("ada","t2") 7.50
}
