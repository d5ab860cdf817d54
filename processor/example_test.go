package processor_test

import (
	"context"
	"fmt"
	"log"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/schema"
)

// A whole program: it starts the emulator, creates a queue and a table, sends a message, and handles it. On Spanner itself
// it is the same without the emulator.
func Example() {
	ctx := context.Background()
	orders := schema.Queue{
		Name:       "Orders",
		KeyColumns: []schema.Column{{Name: "Account", Type: schema.String(36), NotNull: true}},
		Payload:    schema.Bytes(schema.Max),
	}
	const database = "projects/demo/instances/demo/databases/example"
	e, err := emulator.Start(ctx, emulator.Options{IgnoreEnvironment: true})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	err = e.CreateDatabase(ctx, database, orders.DDL(),
		`CREATE TABLE Accounts (Id STRING(36) NOT NULL, Points INT64 NOT NULL) PRIMARY KEY (Id)`)
	if err != nil {
		log.Fatal(err)
	}
	client, err := spanner.NewClientWithConfig(ctx, database, spanner.ClientConfig{DisableNativeMetrics: true}, e.ClientOptions()...)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	q, err := queue.New(client, orders)
	if err != nil {
		log.Fatal(err)
	}
	run, stop := context.WithCancel(ctx)
	defer stop()
	p, err := processor.New(q, processor.Tx(
		func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
			// The message has been acknowledged in tx already. What is written here commits with that, or not at all.
			_, err := tx.Update(ctx, spanner.Statement{
				SQL:    `UPDATE Accounts SET Points = Points + 10 WHERE Id = @id`,
				Params: map[string]any{"id": m.Key[0]},
			})
			stop() // a service would stop at a signal: what has begun is finished and committed
			return err
		}), processor.Config{Concurrency: 16, MaxAttempts: -1})
	if err != nil {
		log.Fatal(err)
	}

	// The message is sent in the transaction that opens the account: both, or neither.
	send, err := q.SendMutation(queue.Outgoing{Key: spanner.Key{"alice"}})
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.Apply(ctx, []*spanner.Mutation{spanner.Insert("Accounts", []string{"Id", "Points"}, []any{"alice", 0}), send})
	if err != nil {
		log.Fatal(err)
	}

	if err := p.Run(run); err != nil {
		log.Fatal(err)
	}

	row, err := client.Single().ReadRow(ctx, "Accounts", spanner.Key{"alice"}, []string{"Points"})
	if err != nil {
		log.Fatal(err)
	}
	var points int64
	if err := row.Columns(&points); err != nil {
		log.Fatal(err)
	}
	fmt.Println("alice has", points, "points")
	// Output: alice has 10 points
}
