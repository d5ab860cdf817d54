// Command orders takes orders through a chain of messages: the stock is reserved, the customer charged, an answer sent. Many
// kinds of message share a queue, answers are handled many at a time, and an order that cannot go on is dead-lettered and
// redriven. See README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"cloud.google.com/go/spanner"
	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/schema"
)

const databaseName = "projects/demo/instances/demo/databases/orders"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// timeLimit ends a run that does not come to its end.
const timeLimit = 2 * time.Minute

func run(ctx context.Context, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeLimit, fmt.Errorf("not done within %v", timeLimit))
	defer cancel()
	e, err := emulator.Start(ctx, emulator.Options{IgnoreEnvironment: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if err := createDatabase(ctx, e); err != nil {
		return err
	}
	s, err := open(ctx, e)
	if err != nil {
		return err
	}
	defer s.client.Close()
	if err := s.fill(ctx); err != nil {
		return err
	}
	return s.story(ctx, misbehave(e.Front().Faults()), out)
}

func createDatabase(ctx context.Context, e *emulator.Emulator) error {
	if err := e.CreateDatabase(ctx, databaseName); err != nil {
		return err
	}
	admin, err := database.NewDatabaseAdminClient(ctx, e.ClientOptions()...)
	if err != nil {
		return err
	}
	defer admin.Close()
	_, err = schema.Apply(ctx, admin, databaseName, elements()...)
	return err
}

// open opens the database on the emulator. On Spanner itself no options are needed.
func open(ctx context.Context, e *emulator.Emulator) (s shop, err error) {
	config := spanner.ClientConfig{DisableNativeMetrics: true}
	if s.client, err = spanner.NewClientWithConfig(ctx, databaseName, config, e.ClientOptions()...); err != nil {
		return s, err
	}
	if s.steps, err = queue.New(s.client, steps); err != nil {
		return s, err
	}
	s.answers, err = queue.New(s.client, answers)
	return s, err
}
