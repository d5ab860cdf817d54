package emulator_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"cloud.google.com/go/spanner"

	"github.com/spanqueue/spanqueue/emulator"
)

// A queue with Google's client alone. It is in docs/emulator.md, too.
func Example_queue() {
	ctx := context.Background()
	e, err := emulator.Start(ctx, emulator.Options{IgnoreEnvironment: true})
	if err != nil {
		log.Fatal(err) // lists every place that was searched, and the commands that help
	}
	defer e.Close()

	const database = "projects/test/instances/test/databases/shop"
	err = e.CreateDatabase(ctx, database,
		`CREATE QUEUE Orders (Id INT64 NOT NULL, Payload STRING(MAX) NOT NULL) PRIMARY KEY (Id)`,
		`CREATE TABLE Shipped (Id INT64 NOT NULL) PRIMARY KEY (Id)`)
	if err != nil {
		log.Fatal(err)
	}
	client, err := spanner.NewClientWithConfig(ctx, database,
		spanner.ClientConfig{DisableNativeMetrics: true}, e.ClientOptions()...)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	_, err = client.Apply(ctx, []*spanner.Mutation{
		spanner.Send("Orders", spanner.Key{1}, "two apples"),
	})
	if err != nil {
		log.Fatal(err)
	}

	errEnough := errors.New("enough")
	receive := spanner.NewStatement(`SELECT Id, Payload FROM RECEIVE_Orders(max_duration => '20s')`)
	err = client.Single().Query(ctx, receive).Do(func(row *spanner.Row) error {
		var id int64
		var payload string
		if err := row.Columns(&id, &payload); err != nil {
			return err
		}
		_, err := client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			// The message goes and its effect comes in one commit. A message that is gone already fails it all.
			_, err := tx.Update(ctx, spanner.Statement{
				SQL:    `DELETE FROM Orders WHERE Id = @id ASSERT_ROWS_MODIFIED 1`,
				Params: map[string]any{"id": id},
			})
			if err != nil {
				return err
			}
			return tx.BufferWrite([]*spanner.Mutation{spanner.Insert("Shipped", []string{"Id"}, []any{id})})
		})
		if err != nil {
			return err
		}
		fmt.Printf("order %d: %s\n", id, payload)
		return errEnough
	})
	if !errors.Is(err, errEnough) {
		log.Fatal(err)
	}
	// Output: order 1: two apples
}
