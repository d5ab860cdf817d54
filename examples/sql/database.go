package main

import (
	"context"
	"database/sql"
	"strings"

	database "cloud.google.com/go/spanner/admin/database/apiv1"
	spannerdriver "github.com/googleapis/go-sql-spanner"
	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/schema"
)

const databaseName = "projects/demo/instances/demo/databases/shop"

// placed is the queue of orders that were placed.
var placed = schema.Queue{
	Name:       "OrdersPlaced",
	KeyColumns: []schema.Column{{Name: "OrderId", Type: schema.String(36), NotNull: true}},
	Payload:    schema.JSON(),
}

const (
	orders = schema.SQL(`CREATE TABLE Orders (
  OrderId STRING(36) NOT NULL,
  Customer STRING(36) NOT NULL,
  Cents INT64 NOT NULL,
) PRIMARY KEY (OrderId)`)

	customers = schema.SQL(`CREATE TABLE Customers (
  Customer STRING(36) NOT NULL,
  Points INT64 NOT NULL,
) PRIMARY KEY (Customer)`)
)

// createDatabase makes the database on the emulator: the tables, the queue, and the two tables beside it.
func createDatabase(ctx context.Context, e *emulator.Emulator) error {
	if err := e.CreateDatabase(ctx, databaseName); err != nil {
		return err
	}
	admin, err := database.NewDatabaseAdminClient(ctx, e.ClientOptions()...)
	if err != nil {
		return err
	}
	defer admin.Close()
	_, err = schema.Apply(ctx, admin, databaseName, orders, customers, placed, schema.Attempts{Queue: placed}, schema.DeadLetters{Queue: placed})
	return err
}

// openDatabase opens the database on the emulator. One on Spanner needs its name only: sql.Open("spanner", databaseName).
func openDatabase(addr string) (*sql.DB, error) {
	name := strings.Split(databaseName, "/")
	connector, err := spannerdriver.CreateConnector(spannerdriver.ConnectorConfig{
		Host:    addr,
		Project: name[1], Instance: name[3], Database: name[5],
		Params: map[string]string{"useplaintext": "true"},
	})
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}
