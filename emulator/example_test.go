package emulator_test

import (
	"context"
	"fmt"
	"log"

	"cloud.google.com/go/spanner"

	"github.com/spanqueue/spanqueue/emulator"
)

func Example() {
	ctx := context.Background()
	e, err := emulator.Start(ctx, emulator.Options{
		IgnoreEnvironment: true, // a fresh one, also where SPANNER_EMULATOR_HOST names another
	})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()

	const database = "projects/example/instances/test/databases/points"
	err = e.CreateDatabase(ctx, database, `CREATE TABLE Account (Id STRING(36) NOT NULL, Points INT64 NOT NULL) PRIMARY KEY (Id)`)
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
		spanner.Insert("Account", []string{"Id", "Points"}, []any{"ada", 100}),
	})
	if err != nil {
		log.Fatal(err)
	}
	row, err := client.Single().ReadRow(ctx, "Account", spanner.Key{"ada"}, []string{"Points"})
	if err != nil {
		log.Fatal(err)
	}
	var points int64
	if err := row.Columns(&points); err != nil {
		log.Fatal(err)
	}
	fmt.Println("ada has", points, "points")
	// Output: ada has 100 points
}
