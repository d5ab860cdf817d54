package main

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spf13/cobra"

	"github.com/spanqueue/spanqueue/queue"
)

// target is the queue that a command is about.
type target struct {
	open            opener
	database, queue string
	timeout         time.Duration // until the database's first answer
}

// opener opens a queue of a database, both by name. close must be called once the queue is not used any more.
type opener func(ctx context.Context, database, name string) (q *queue.Queue, close func(), err error)

var databaseName = regexp.MustCompile(`^projects/[^/]+/instances/[^/]+/databases/[^/]+$`)

// openQueue opens a queue with the credentials that Google's client finds, or on the emulator that SPANNER_EMULATOR_HOST
// names.
func openQueue(ctx context.Context, database, name string) (*queue.Queue, func(), error) {
	client, err := spanner.NewClientWithConfig(ctx, database, spanner.ClientConfig{DisableNativeMetrics: true})
	if err != nil {
		return nil, nil, fmt.Errorf("connect to %s: %w", database, err)
	}
	q, err := queue.Open(ctx, client, name)
	if err != nil {
		client.Close()
		return nil, nil, err
	}
	return q, client.Close, nil
}

// addTo adds the flags that name the queue.
func (t *target) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&t.database, "database", "", "the database, as `projects/P/instances/I/databases/D`")
	flags.StringVar(&t.queue, "queue", "", "the `name` of the queue or queue table")
	flags.DurationVar(&t.timeout, "connect-timeout", 10*time.Second, "how long to wait for the database's first answer")
	for _, name := range []string{"database", "queue"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // a flag that was added above
		}
	}
}

// with opens the queue for f.
func (t *target) with(cmd *cobra.Command, f func(*queue.Queue) error) error {
	if !databaseName.MatchString(t.database) {
		return fmt.Errorf("--database is %q; it must be projects/P/instances/I/databases/D", t.database)
	}
	if t.timeout <= 0 {
		return fmt.Errorf("--connect-timeout is %v; it must be above 0", t.timeout)
	}
	var q *queue.Queue
	var done func()
	err := firstAnswer(cmd.Context(), cmd.ErrOrStderr(), t.database, t.timeout, func(ctx context.Context) (err error) {
		q, done, err = t.open(ctx, t.database, t.queue)
		return err
	})
	if err != nil {
		return err
	}
	defer done()
	return f(q)
}
