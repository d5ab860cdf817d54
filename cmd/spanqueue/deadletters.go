package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/spanqueue/spanqueue/queue"
)

func newDeadLettersCommand(connect connector) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "deadletters",
		Short: "List, show, redrive and discard the messages that were given up",
		Long: `List, show, redrive and discard the dead letters of a queue: the messages that a processor gave up.

A letter is named by its key and its time of death, as the list shows it:

  ["alice",7]@2026-11-30T16:13:10.767808Z

The key is a JSON array with one element a key column: null for NULL, base64 for BYTES, strings for times,
dates, numerics and UUIDs. A key of one column may be written without the array, and the time may be left
out where the key has died once.

Several operators may be at work at once: each letter is settled by one of them.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newListCommand(connect),
		newShowCommand(connect),
		newRedriveCommand(connect),
		newDiscardCommand(connect),
	)
	return cmd
}

// filterFlags choose dead letters.
type filterFlags struct {
	key, reason, handler, errorText string
	since, until                    string
}

func (f *filterFlags) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.key, "key", "", "only letters of this `key`")
	flags.StringVar(&f.reason, "reason", "", "only letters of this `reason`, for instance attempts")
	flags.StringVar(&f.handler, "handler", "", "only letters of this `handler`")
	flags.StringVar(&f.errorText, "error", "", "only letters whose error has this `text` in it")
	flags.StringVar(&f.since, "since", "", "only deaths at or after this `time`, such as 2026-11-30T16:00:00Z, or so long ago, such as 2h")
	flags.StringVar(&f.until, "until", "", "only deaths before this `time`, or longer ago than that")
}

// set says whether any of them was given.
func (f *filterFlags) set() bool { return *f != filterFlags{} }

func (f *filterFlags) filter(ctx context.Context, q *queue.Queue) (queue.DeadLetterFilter, error) {
	out := queue.DeadLetterFilter{Reason: f.reason, Handler: f.handler, Error: f.errorText}
	var err error
	if f.key != "" {
		if out.Key, err = parseKey(q.Definition(), f.key); err != nil {
			return out, fmt.Errorf("--key: %w", err)
		}
	}
	if out.From, err = moment(ctx, q, "--since", f.since); err != nil {
		return out, err
	}
	out.Until, err = moment(ctx, q, "--until", f.until)
	return out, err
}

// moment reads a time, or how long ago it was by the database's clock. The empty text is the zero time.
func moment(ctx context.Context, q *queue.Queue, flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return at, nil
	}
	ago, err := time.ParseDuration(text)
	if err != nil || ago < 0 {
		return time.Time{}, fmt.Errorf("%s is %q; it must be a time such as 2026-11-30T16:00:00Z, or how long ago, such as 2h", flag, text)
	}
	now, err := q.ServerTime(ctx)
	return now.Add(-ago), err
}
