package main

import (
	"context"

	"cloud.google.com/go/spanner"
	"github.com/spf13/cobra"

	"github.com/spanqueue/spanqueue/queue"
)

// target is the queue that a command is about.
type target struct {
	database
	queue string
}

func newTarget(connect connector) target { return target{database: database{connect: connect}} }

// addTo adds the flags that name the queue.
func (t *target) addTo(cmd *cobra.Command) {
	t.database.addTo(cmd)
	cmd.Flags().StringVar(&t.queue, "queue", "", "the `name` of the queue or queue table")
	if err := cmd.MarkFlagRequired("queue"); err != nil {
		panic(err) // the flag was added above
	}
}

// with opens the queue for f.
func (t *target) with(cmd *cobra.Command, f func(*queue.Queue) error) error {
	var q *queue.Queue
	open := func(ctx context.Context, client *spanner.Client) (err error) {
		q, err = queue.Open(ctx, client, t.queue)
		return err
	}
	return t.database.with(cmd, open, func(*spanner.Client) error { return f(q) })
}
