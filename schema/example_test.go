package schema_test

import (
	"context"
	"errors"
	"fmt"

	database "cloud.google.com/go/spanner/admin/database/apiv1"

	"github.com/spanqueue/spanqueue/schema"
)

func ExampleQueue_DDL() {
	q := schema.Queue{
		Name: "Purchases",
		KeyColumns: []schema.Column{
			{Name: "Account", Type: schema.String(64), NotNull: true},
			{Name: "Order", Type: schema.String(36), NotNull: true},
		},
		Payload:    schema.JSON(),
		Interleave: schema.Interleave{Table: "Accounts", InParent: true, OnDelete: schema.Cascade},
	}
	if err := q.Validate(); err != nil {
		fmt.Println(err)
	}
	fmt.Println(q.DDL())
	// Output:
	// CREATE QUEUE Purchases (
	//   Account STRING(64) NOT NULL,
	//   `Order` STRING(36) NOT NULL,
	//   Payload JSON NOT NULL
	// ) PRIMARY KEY (Account, `Order`),
	// INTERLEAVE IN PARENT Accounts ON DELETE CASCADE
}

func ExampleParseStatement() {
	st, err := schema.ParseStatement("create queue Tasks (Id int64 not null, Payload bytes(max) not null,) primary key (Id)")
	if err != nil {
		fmt.Println(err)
		return
	}
	switch st := st.(type) {
	case *schema.CreateQueue:
		fmt.Println("queue", st.Queue.Name, "of", st.Queue.Payload)
	case *schema.Other:
		fmt.Println("not about queues")
	}

	_, err = schema.ParseStatement("CREATE QUEUE Tasks (\n  Id INT64 NOT NULL,\n  Payload BYTES(MAX),\n) PRIMARY KEY (Id)")
	fmt.Println(err)
	// Output:
	// queue Tasks of BYTES(MAX)
	// schema: line 3, column 21: expected NOT NULL after the type of Payload, which may not be nullable, found ,
}

// Apply is called by every process when it starts: the first creates what is
// missing, the others find it.
func ExampleApply() {
	setUp := func(ctx context.Context, admin *database.DatabaseAdminClient) error {
		purchases := schema.Queue{
			Name:       "Purchases",
			KeyColumns: []schema.Column{{Name: "Id", Type: schema.String(36), NotNull: true}},
			Payload:    schema.JSON(),
		}
		_, err := schema.Apply(ctx, admin, "projects/p/instances/i/databases/shop",
			schema.SQL(`CREATE TABLE Accounts (Id STRING(64) NOT NULL, Points INT64 NOT NULL) PRIMARY KEY (Id)`),
			purchases,
			schema.Attempts{Queue: purchases},
			schema.DeadLetters{Queue: purchases, RetentionDays: 90},
		)
		if errors.Is(err, schema.ErrShape) {
			return fmt.Errorf("the database holds an older definition, change it by hand: %w", err)
		}
		return err
	}
	_ = setUp
}
