package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/spanqueue/spanqueue/queue"
)

func newStatsCommand(open opener) *cobra.Command {
	t := target{open: open}
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Count a queue's messages, and say how long the oldest has been due",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return t.with(cmd.Context(), func(q *queue.Queue) error {
				s, err := q.Stats(cmd.Context())
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "ready    %d\ndelayed  %d\noldest   %v\n", s.Ready, s.Delayed, s.OldestAge)
				return err
			})
		},
	}
	t.addTo(cmd)
	return cmd
}

// widestPayload is how much of a payload a line of peek has room for.
const widestPayload = 60

func newPeekCommand(open opener) *cobra.Command {
	var (
		t      = target{open: open}
		n      int
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "peek",
		Short: "Show the messages that are due first, without taking them",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n < 1 {
				return fmt.Errorf("-n is %d; it must be at least 1", n)
			}
			return t.with(cmd.Context(), func(q *queue.Queue) error {
				messages, err := q.Peek(cmd.Context(), n)
				if err != nil {
					return err
				}
				return printMessages(cmd, messages, asJSON)
			})
		},
	}
	t.addTo(cmd)
	cmd.Flags().IntVarP(&n, "number", "n", 10, "how many messages to show at most")
	cmd.Flags().BoolVar(&asJSON, "json", false, "a JSON object a line, payloads in base64")
	return cmd
}

func printMessages(cmd *cobra.Command, messages []*queue.Message, asJSON bool) error {
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	if !asJSON {
		fmt.Fprintln(table, "KEY\tDUE\tBYTES\tPAYLOAD")
	}
	for _, m := range messages {
		if !asJSON {
			fmt.Fprintf(table, "%s\t%s\t%d\t%s\n", formatKey(m.Key), formatTime(m.DeliverTime), len(m.Payload), preview(m.Payload, widestPayload))
			continue
		}
		err := printJSON(cmd.OutOrStdout(), struct {
			Key         json.RawMessage `json:"key"`
			DeliverTime string          `json:"deliverTime"`
			Payload     []byte          `json:"payload"`
		}{json.RawMessage(formatKey(m.Key)), formatTime(m.DeliverTime), m.Payload})
		if err != nil {
			return err
		}
	}
	return table.Flush()
}

func newPurgeCommand(open opener) *cobra.Command {
	var (
		t   = target{open: open}
		yes bool
	)
	cmd := &cobra.Command{
		Use:   "purge --yes",
		Short: "Remove every message of a queue, handled or not",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !yes {
				return errors.New("purge removes every message of the queue for good, also those that are being handled: say --yes")
			}
			return t.with(cmd.Context(), func(q *queue.Queue) error {
				n, err := q.Purge(cmd.Context())
				fmt.Fprintf(cmd.OutOrStdout(), "purged %d\n", n)
				return err
			})
		},
	}
	t.addTo(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "yes, remove them all")
	return cmd
}
