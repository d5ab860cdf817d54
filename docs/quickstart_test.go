package docs

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/processor/processortest"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuetest"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { emulatortest.Main(m) }

// The program of the README, block by block.

var placed = schema.Queue{
	Name:       "OrdersPlaced",
	KeyColumns: []schema.Column{{Name: "OrderId", Type: schema.String(36), NotNull: true}},
	Payload:    schema.JSON(),
}

func createQueue(ctx context.Context, admin *database.DatabaseAdminClient, databaseName string) error {
	_, err := schema.Apply(ctx, admin, databaseName,
		placed,
		schema.Attempts{Queue: placed},    // how often a message was tried
		schema.DeadLetters{Queue: placed}) // what failed for good
	return err
}

type order struct {
	Customer string
	Points   int64
}

func place(ctx context.Context, client *spanner.Client, q *queue.Queue, id string, o order) error {
	payload, err := json.Marshal(o)
	if err != nil {
		return err
	}
	send, err := q.SendMutation(queue.Outgoing{Key: spanner.Key{id}, Payload: payload})
	if err != nil {
		return err
	}
	_, err = client.Apply(ctx, []*spanner.Mutation{ // or BufferWrite, in any transaction of yours
		spanner.Insert("Orders", []string{"OrderId", "Customer"}, []any{id, o.Customer}),
		send,
	})
	return err
}

func grant(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message, o order) error {
	// The message has been acknowledged in tx already. What is written here commits with that, or not at all.
	_, err := tx.Update(ctx, spanner.Statement{
		SQL:    `UPDATE Customers SET Points = Points + @points WHERE Customer = @customer`,
		Params: map[string]any{"points": o.Points, "customer": o.Customer},
	})
	return err // nil commits; an error rolls back, and the message comes again later
}

var handler = processor.Typed(processor.JSON[order], grant)

func work(ctx context.Context, client *spanner.Client) error {
	q, err := queue.New(client, placed)
	if err != nil {
		return err
	}
	p, err := processor.New(q, handler, processor.Config{})
	if err != nil {
		return err
	}
	return p.Run(ctx) // until ctx ends; then what has begun is finished, and Run returns
}

func TestGrant(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, tables...) // a database of its own, on the emulator
	require.NoError(t, createQueue(t.Context(), adminClient(t, db), db.Name))
	client := db.Client(t)
	openAccount(t, client, "ada")
	q, err := queue.New(client, placed)
	require.NoError(t, err)
	require.NoError(t, place(t.Context(), client, q, "o1", order{Customer: "ada", Points: 10}))

	processortest.Drain(t, q, handler, processor.Config{}) // handles all there is

	queuetest.RequireEmpty(t, q)
	require.Equal(t, int64(10), pointsOf(t, client, "ada"))
}

var tables = []string{
	`CREATE TABLE Orders (OrderId STRING(36) NOT NULL, Customer STRING(36) NOT NULL) PRIMARY KEY (OrderId)`,
	`CREATE TABLE Customers (Customer STRING(36) NOT NULL, Points INT64 NOT NULL) PRIMARY KEY (Customer)`,
}

// The other half of the program: work runs until it is told to stop.
func TestWork(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, tables...)
	require.NoError(t, createQueue(t.Context(), adminClient(t, db), db.Name))
	client := db.Client(t)
	openAccount(t, client, "ada")
	q, err := queue.New(client, placed)
	require.NoError(t, err)
	require.NoError(t, place(t.Context(), client, q, "o1", order{Customer: "ada", Points: 10}))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ran := make(chan error, 1)
	go func() { ran <- work(ctx, client) }()
	require.Eventually(t, func() bool { return pointsOf(t, client, "ada") == 10 }, time.Minute, 20*time.Millisecond)
	stop()
	require.NoError(t, <-ran)
	queuetest.RequireEmpty(t, q)
}

func adminClient(t *testing.T, db *emulatortest.DB) *database.DatabaseAdminClient {
	t.Helper()
	admin, err := database.NewDatabaseAdminClient(t.Context(), db.ClientOptions()...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = admin.Close() })
	return admin
}

func openAccount(t *testing.T, client *spanner.Client, customer string) {
	t.Helper()
	_, err := client.Apply(t.Context(), []*spanner.Mutation{spanner.Insert("Customers", []string{"Customer", "Points"}, []any{customer, 0})})
	require.NoError(t, err)
}

func pointsOf(t *testing.T, client *spanner.Client, customer string) (points int64) {
	t.Helper()
	row, err := client.Single().ReadRow(t.Context(), "Customers", spanner.Key{customer}, []string{"Points"})
	require.NoError(t, err)
	require.NoError(t, row.Columns(&points))
	return points
}

// The Go blocks of these pages stand in the tests beside them, word for word.
func TestTheProgramsOfThePagesAreThoseThatRun(t *testing.T) {
	t.Parallel()
	for page, file := range map[string]string{"../README.md": "quickstart_test.go", "testing.md": "testing_test.go"} {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		code, err := os.ReadFile(file)
		require.NoError(t, err)
		blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(text), -1)
		require.NotEmpty(t, blocks)
		for _, b := range blocks {
			require.True(t, strings.Contains(string(code), b[1]), "this block of %s is not in %s:\n%s", page, file, b[1])
		}
	}
}
