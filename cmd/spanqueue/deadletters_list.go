package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/spanqueue/spanqueue/queue"
)

func newListCommand(connect connector) *cobra.Command {
	var (
		t      = newTarget(connect)
		f      filterFlags
		limit  int
		after  string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List dead letters, the oldest first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return fmt.Errorf("--limit is %d; it must be at least 1", limit)
			}
			return t.with(cmd, func(q *queue.Queue) error {
				letters, err := page(cmd.Context(), q, f, after, limit)
				if err != nil {
					return err
				}
				if err := printLetters(cmd.OutOrStdout(), letters, asJSON); err != nil {
					return err
				}
				if len(letters) == limit {
					last := letters[limit-1]
					_, err = fmt.Fprintf(cmd.ErrOrStderr(), "There may be more: --after '%s'\n", formatLetter(last.Key, last.DeadAt))
				}
				return err
			})
		},
	}
	t.addTo(cmd)
	f.addTo(cmd)
	flags := cmd.Flags()
	flags.IntVar(&limit, "limit", 50, "how many letters to show at most")
	flags.StringVar(&after, "after", "", "begin after this `letter`, the last one of the page before")
	flags.BoolVar(&asJSON, "json", false, "a JSON object a line")
	return cmd
}

func page(ctx context.Context, q *queue.Queue, f filterFlags, after string, limit int) ([]*queue.DeadLetter, error) {
	filter, err := f.filter(ctx, q)
	if err != nil {
		return nil, err
	}
	var from *queue.DeadLetter
	if after != "" {
		key, deadAt, err := findLetter(ctx, q, after)
		if err != nil {
			return nil, fmt.Errorf("--after: %w", err)
		}
		from = &queue.DeadLetter{Key: key, DeadAt: deadAt}
	}
	return q.DeadLetters().List(ctx, filter, from, limit)
}

// widestError is how much of an error a line of the list has room for.
const widestError = 80

func printLetters(w io.Writer, letters []*queue.DeadLetter, asJSON bool) error {
	if asJSON {
		for _, l := range letters {
			if err := printJSON(w, letterObject(l)); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "LETTER\tATTEMPTS\tREASON\tHANDLER\tERROR")
	for _, l := range letters {
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\n", formatLetter(l.Key, l.DeadAt), l.Attempts, l.Reason, l.Handler, oneLine(l.Error, widestError))
	}
	return table.Flush()
}
