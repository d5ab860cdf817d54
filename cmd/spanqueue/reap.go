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

// connector makes a client for a database.
type connector func(ctx context.Context, database string) (*spanner.Client, error)

func connect(ctx context.Context, database string) (*spanner.Client, error) {
	return spanner.NewClientWithConfig(ctx, database, spanner.ClientConfig{DisableNativeMetrics: true})
}

// newReapCommand makes the command that cron calls where no Reaper runs in a service.
func newReapCommand(connect connector) *cobra.Command {
	var (
		database, table string
		retention       time.Duration
		batch           int
	)
	cmd := &cobra.Command{
		Use:   "reap",
		Short: "Delete expired operation records, and report operations that have not ended",
		Long: "Delete expired operation records in bounded transactions, and report operations that have not ended and that\n" +
			"nobody works on. Nothing depends on it but the size of the table. Operations that have not ended are never deleted;\n" +
			"the command exits with 1 when there are some, so that cron tells somebody.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !databaseName.MatchString(database) {
				return fmt.Errorf("--database is %q; it must be projects/P/instances/I/databases/D", database)
			}
			client, err := connect(cmd.Context(), database)
			if err != nil {
				return fmt.Errorf("connect to %s: %w", database, err)
			}
			defer client.Close()
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
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&database, "database", "", "the database, as `projects/P/instances/I/databases/D`")
	flags.StringVar(&table, "table", "", "the `name` of the table of operations, if it is not the usual one")
	flags.DurationVar(&retention, "retention", 0, "the table's retention, if it is not the usual one (0 means 48h): no record is looked at sooner,\nand none is deleted before its own is over")
	flags.IntVar(&batch, "batch", 0, "records that one transaction deletes (0 means 500)")
	if err := cmd.MarkFlagRequired("database"); err != nil {
		panic(err) // a flag that was added above
	}
	return cmd
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
