package main

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spf13/cobra"

	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/schema"
)

// newReapCommand makes the command that cron calls where no Reaper runs in a service.
func newReapCommand(connect connector) *cobra.Command {
	var (
		d         = database{connect: connect}
		table     string
		retention time.Duration
		batch     int
	)
	cmd := &cobra.Command{
		Use:   "reap",
		Short: "Delete expired operation records, and report operations that have not ended",
		Long: "Delete expired operation records in bounded transactions, and report operations that have not ended and that\n" +
			"nobody works on. Nothing depends on it but the size of the table. Operations that have not ended are never deleted;\n" +
			"the command exits with 1 when there are some, so that cron tells somebody.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return d.with(cmd, ping, func(client *spanner.Client) error {
				store, err := idempotency.New(client, schema.Operations{Table: table, Retention: retention}, idempotency.Config{})
				if err != nil {
					return err
				}
				reaper, err := store.Reaper(idempotency.ReaperConfig{Batch: batch})
				if err != nil {
					return err
				}
				swept, err := reaper.Sweep(cmd.Context())
				if err != nil {
					return fmt.Errorf("after %d deleted records: %w", swept.Deleted, err)
				}
				return printSwept(cmd, swept)
			})
		},
	}
	d.addTo(cmd)
	flags := cmd.Flags()
	flags.StringVar(&table, "table", "", "the `name` of the table of operations, if it is not the usual one")
	flags.DurationVar(&retention, "retention", 0, "the table's retention, if it is not the usual one (0 means 48h): no record is looked at sooner,\nand none is deleted before its own is over")
	flags.IntVar(&batch, "batch", 0, "records that one transaction deletes (0 means 500)")
	return cmd
}

func ping(ctx context.Context, client *spanner.Client) error {
	return client.Single().Query(ctx, spanner.Statement{SQL: "SELECT 1"}).Do(func(*spanner.Row) error { return nil })
}

func printSwept(cmd *cobra.Command, s idempotency.Swept) error {
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "deleted  %d, expired for up to %v\n", s.Deleted, s.Lag.Round(time.Second))
	fmt.Fprintf(out, "left     %d records, %d bytes, the oldest %v old\n", s.Records, s.Bytes, s.Oldest.Round(time.Second))
	for _, u := range s.Unfinished {
		fmt.Fprintf(out, "open     %s, %s, begun %s\n", u.Operation, u.State, formatTime(u.Created))
	}
	if n := len(s.Unfinished); n > 0 {
		return fmt.Errorf("%d operations have not ended and have no owner: the next call of each goes on with it", n)
	}
	return nil
}
