package queue_test

import (
	"context"
	"log"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/schema"
)

// orders is the queue of the examples.
var orders = schema.Queue{
	Name:       "Orders",
	KeyColumns: []schema.Column{{Name: "Id", Type: schema.String(36), NotNull: true}},
	Payload:    schema.String(schema.Max),
}

// setUp starts an emulator with a database for an example: the queue, the two tables beside it, and one of shipments.
// More elements are made besides.
func setUp(ctx context.Context, more ...schema.Element) (client *spanner.Client, tearDown func()) {
	const database = "projects/demo/instances/demo/databases/example"
	e, err := emulator.Start(ctx, emulator.Options{IgnoreEnvironment: true})
	check(err)
	ddl := append(schema.DeadLetters{Queue: orders}.Statements(), schema.Attempts{Queue: orders}.Statements()[0], orders.DDL(),
		`CREATE TABLE Shipments (Id STRING(36) NOT NULL, Address STRING(MAX) NOT NULL) PRIMARY KEY (Id)`)
	for _, element := range more {
		ddl = append(ddl, element.Statements()...)
	}
	check(e.CreateDatabase(ctx, database, ddl...))
	client, err = spanner.NewClientWithConfig(ctx, database, spanner.ClientConfig{DisableNativeMetrics: true}, e.ClientOptions()...)
	check(err)
	return client, func() {
		client.Close()
		check(e.Close())
	}
}

// check ends the example when something goes wrong; a program of yours has its own way.
func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}

func shipments(ctx context.Context, client *spanner.Client) (n int64) {
	row, err := client.Single().Query(ctx, spanner.NewStatement(`SELECT COUNT(*) FROM Shipments`)).Next()
	check(err)
	check(row.Columns(&n))
	return n
}

func ship(id, address string) *spanner.Mutation {
	return spanner.Insert("Shipments", []string{"Id", "Address"}, []any{id, address})
}
