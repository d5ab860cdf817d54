package idempotency_test

import (
	"context"
	"log"

	"cloud.google.com/go/spanner"

	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/schema"
)

// exampleDatabase gives an example a database of its own with the operations
// table and a table of rides. An application has its database already, and
// creates the table with schema.Apply.
func exampleDatabase() (client *spanner.Client, done func()) {
	ctx := context.Background()
	e, err := emulator.Start(ctx, emulator.Options{IgnoreEnvironment: true})
	if err != nil {
		log.Fatal(err)
	}
	const name = "projects/example/instances/example/databases/example"
	if err := e.CreateDatabase(ctx, name, append(schema.Operations{}.Statements(), rides)...); err != nil {
		log.Fatal(err)
	}
	client, err = spanner.NewClientWithConfig(ctx, name, spanner.ClientConfig{DisableNativeMetrics: true}, e.ClientOptions()...)
	if err != nil {
		log.Fatal(err)
	}
	return client, func() {
		client.Close()
		if err := e.Close(); err != nil {
			log.Fatal(err)
		}
	}
}

func exampleStore(client *spanner.Client) *idempotency.Store {
	store, err := idempotency.New(client, schema.Operations{}, idempotency.Config{})
	if err != nil {
		log.Fatal(err)
	}
	return store
}

// insertRide is the write of the examples.
func insertRide(tx *spanner.ReadWriteTransaction, request, id string) error {
	return tx.BufferWrite([]*spanner.Mutation{
		spanner.Insert("Rides", []string{"Request", "Id"}, []any{request, id}),
	})
}
