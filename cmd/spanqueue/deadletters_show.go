package main

import (
	"encoding/hex"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/spanqueue/spanqueue/queue"
)

func newShowCommand(connect connector) *cobra.Command {
	var (
		t                   = newTarget(connect)
		asJSON, payloadOnly bool
	)
	cmd := &cobra.Command{
		Use:     "show LETTER",
		Short:   "Show one dead letter with its payload",
		Example: `  spanqueue deadletters show --database projects/p/instances/i/databases/d --queue Orders '["alice",7]'`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if asJSON && payloadOnly {
				return fmt.Errorf("--json and --payload exclude each other")
			}
			return t.with(cmd, func(q *queue.Queue) error {
				key, deadAt, err := findLetter(cmd.Context(), q, args[0])
				if err != nil {
					return err
				}
				l, err := q.DeadLetters().Get(cmd.Context(), key, deadAt)
				if err != nil {
					return err
				}
				switch {
				case payloadOnly:
					_, err = cmd.OutOrStdout().Write(l.Payload)
				case asJSON:
					err = printJSON(cmd.OutOrStdout(), letterObject(l))
				default:
					err = showLetter(cmd.OutOrStdout(), l)
				}
				return err
			})
		},
	}
	t.addTo(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "a JSON object, the payload in base64")
	cmd.Flags().BoolVar(&payloadOnly, "payload", false, "the payload alone, byte for byte")
	return cmd
}

func showLetter(w io.Writer, l *queue.DeadLetter) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, line := range []struct{ name, value string }{
		{"letter", formatLetter(l.Key, l.DeadAt)},
		{"key", formatKey(l.Key)},
		{"dead at", formatTime(l.DeadAt)},
		{"deliver time", formatTime(l.DeliverTime)},
		{"first attempt", formatTime(l.FirstAt)},
		{"last attempt", formatTime(l.LastAt)},
		{"attempts", fmt.Sprint(l.Attempts)},
		{"handler", l.Handler},
		{"priority", fmt.Sprint(l.Priority)},
		{"reason", l.Reason},
		{"error", l.Error},
		{"payload", fmt.Sprintf("%d bytes", len(l.Payload))},
	} {
		fmt.Fprintf(table, "%s\t%s\n", line.name, line.value)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if readable(l.Payload) {
		_, err := fmt.Fprintf(w, "\n%s\n", l.Payload)
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s", hex.Dump(l.Payload))
	return err
}
