package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/spanqueue/spanqueue/queue"
)

func newStatsCommand(connect connector) *cobra.Command {
	var (
		t      = newTarget(connect)
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Count a queue's messages, and say how long the oldest has been due",
		Long: "Count a queue's messages: those that are due (ready, those that are being handled included) and those that are due\n" +
			"later (delayed), and say how long the oldest has been due. It reads the whole queue, and takes as long as that takes.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return t.with(cmd, func(q *queue.Queue) error {
				s, err := q.Stats(cmd.Context())
				if err != nil {
					return err
				}
				return printStats(cmd.OutOrStdout(), s, asJSON)
			})
		},
	}
	t.addTo(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "a JSON object, the age in seconds")
	return cmd
}

func printStats(w io.Writer, s queue.Stats, asJSON bool) error {
	if !asJSON {
		_, err := fmt.Fprintf(w, "ready    %d\ndelayed  %d\noldest   %v\n", s.Ready, s.Delayed, s.OldestAge)
		return err
	}
	return printJSON(w, struct {
		Ready            int64   `json:"ready"`
		Delayed          int64   `json:"delayed"`
		OldestAgeSeconds float64 `json:"oldestAgeSeconds"`
	}{s.Ready, s.Delayed, s.OldestAge.Seconds()})
}

// widestPayload is how much of a payload a line of peek has room for.
const widestPayload = 60

func newPeekCommand(connect connector) *cobra.Command {
	var (
		t      = newTarget(connect)
		n      int
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "peek",
		Short: "Show the messages that are due first, without taking them",
		Long: "Show the messages that are due first, with their keys, due times and payloads, without taking or leasing them. Those\n" +
			"that are being handled are among them.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n < 1 {
				return fmt.Errorf("-n is %d; it must be at least 1", n)
			}
			return t.with(cmd, func(q *queue.Queue) error {
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

func newPurgeCommand(connect connector) *cobra.Command {
	var (
		t   = newTarget(connect)
		yes bool
	)
	cmd := &cobra.Command{
		Use:   "purge --yes",
		Short: "Remove every message of a queue, handled or not",
		Long: "Remove every message of a queue for good, also those that are being handled: what their handlers have written is not\n" +
			"kept. Dead letters stay where they are. There is no way back, so it wants --yes. To hold messages back instead, switch\n" +
			"delivery off: ALTER QUEUE name SET OPTIONS (disable_delivery = true).",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !yes {
				return errors.New("purge removes every message of the queue for good, also those that are being handled: say --yes")
			}
			return t.with(cmd, func(q *queue.Queue) error {
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
