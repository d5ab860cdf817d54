package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spf13/cobra"

	"github.com/spanqueue/spanqueue/queue"
)

// settlement is what redrive and discard have in common.
type settlement struct {
	target
	filterFlags
	all  bool
	rate float64

	// retention is how old a letter may be, unless force is given; 0 is no bound.
	retention time.Duration
	force     bool

	settled string // the word for a letter that was settled
	one     func(*queue.DeadLetters, context.Context, spanner.Key, time.Time) error
	many    func(*queue.DeadLetters, context.Context, queue.DeadLetterFilter, queue.BulkOptions) (queue.BulkResult, error)
}

func newRedriveCommand(connect connector) *cobra.Command {
	s := &settlement{
		target: newTarget(connect), settled: "redriven",
		one: (*queue.DeadLetters).Redrive, many: (*queue.DeadLetters).RedriveAll,
	}
	cmd := &cobra.Command{
		Use:   "redrive (LETTER... | --all)",
		Short: "Send dead letters again under their own keys, due now",
		Long: `Send dead letters again under their own keys, due now, a transaction each. A letter whose key is in the queue
is kept, and the exit code is 1 then. With --all: all letters that the filters choose, but for those that die
while it runs.

A letter that is older than --retention is refused without --force: the record of its operation may be gone by now, and
a handler that relies on it would do the work a second time if it was done after all.`,
		Example: `  spanqueue deadletters redrive --database projects/p/instances/i/databases/d --queue Orders '["alice",7]'
  spanqueue deadletters redrive --database projects/p/instances/i/databases/d --queue Orders --all --error 'HTTP 503' --rate 10`,
	}
	cmd.Flags().DurationVar(&s.retention, "retention", 48*time.Hour, "how long operation records are kept; 0 is for ever, or for handlers without them")
	cmd.Flags().BoolVar(&s.force, "force", false, "also letters that are older than --retention")
	return s.finish(cmd, func([]string) error {
		if s.retention < 0 {
			return fmt.Errorf("--retention is %v; it must not be negative", s.retention)
		}
		return nil
	})
}

func newDiscardCommand(connect connector) *cobra.Command {
	var yes bool
	s := &settlement{
		target: newTarget(connect), settled: "discarded",
		one: (*queue.DeadLetters).Discard, many: (*queue.DeadLetters).DiscardAll,
	}
	cmd := &cobra.Command{
		Use:   "discard (LETTER... | --all --yes)",
		Short: "Remove dead letters for good",
		Long: `Remove dead letters for good, a transaction each. With --all: all letters that the filters choose, but for
those that die while it runs; it wants --yes.`,
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "with --all: yes, remove them all")
	return s.finish(cmd, func([]string) error {
		if s.all && !yes {
			return errors.New("discard --all removes messages for good: look with list and the same filters first, then say --yes")
		}
		return nil
	})
}

// finish adds flags and the work to the command. check is asked first.
func (s *settlement) finish(cmd *cobra.Command, check func(args []string) error) *cobra.Command {
	s.target.addTo(cmd)
	s.filterFlags.addTo(cmd)
	cmd.Flags().BoolVar(&s.all, "all", false, "all letters that the filters choose")
	cmd.Flags().Float64Var(&s.rate, "rate", 0, "with --all: `letters` a second at most; 0 is no limit")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case s.all && len(args) > 0:
			return errors.New("name letters or say --all, not both")
		case !s.all && len(args) == 0:
			return errors.New("name the letters, or say --all")
		case !s.all && (s.filterFlags.set() || s.rate != 0):
			return errors.New("filters and --rate are for --all")
		}
		if err := check(args); err != nil {
			return err
		}
		return s.with(cmd, func(q *queue.Queue) error {
			if s.all {
				return s.runAll(cmd, q)
			}
			return s.runEach(cmd, q, args)
		})
	}
	return cmd
}

// runEach settles the letters that were named. One that cannot be settled does not hinder the others.
func (s *settlement) runEach(cmd *cobra.Command, q *queue.Queue, names []string) error {
	var failures []error
	for _, name := range names {
		key, deadAt, err := findLetter(cmd.Context(), q, name)
		if err == nil {
			err = s.tooOld(cmd.Context(), q, key, deadAt)
		}
		if err == nil {
			err = s.one(q.DeadLetters(), cmd.Context(), key, deadAt)
		}
		if err != nil {
			failures = append(failures, err)
			continue
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", s.settled, formatLetter(key, deadAt))
	}
	return errors.Join(failures...)
}

func (s *settlement) runAll(cmd *cobra.Command, q *queue.Queue) error {
	filter, err := s.filter(cmd.Context(), q)
	if err != nil {
		return err
	}
	if err := s.leaveOld(cmd, q, &filter); err != nil {
		return err
	}
	result, err := s.many(q.DeadLetters(), cmd.Context(), filter, queue.BulkOptions{
		Rate: s.rate,
		Each: func(l *queue.DeadLetter, err error) {
			switch name := formatLetter(l.Key, l.DeadAt); {
			case err == nil:
				fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", s.settled, name)
			case errors.Is(err, queue.ErrExists):
				fmt.Fprintf(cmd.ErrOrStderr(), "kept %s: its key is in the queue\n", name)
			default:
				fmt.Fprintf(cmd.ErrOrStderr(), "gone %s: settled by somebody else\n", name)
			}
		},
	})
	fmt.Fprintf(cmd.ErrOrStderr(), "%d %s, %d kept, %d gone\n", result.Settled, s.settled, result.Kept, result.Gone)
	if err == nil && result.Kept > 0 {
		err = fmt.Errorf("not all were %s: %d kept, since their keys are in the queue", s.settled, result.Kept)
	}
	return err
}

// since returns the time of death before which letters are too old, by the database's clock.
func (s *settlement) since(ctx context.Context, q *queue.Queue) (since time.Time, bounded bool, err error) {
	if s.retention == 0 || s.force {
		return time.Time{}, false, nil
	}
	now, err := q.ServerTime(ctx)
	return now.Add(-s.retention), true, err
}

func (s *settlement) tooOld(ctx context.Context, q *queue.Queue, key spanner.Key, deadAt time.Time) error {
	since, bounded, err := s.since(ctx, q)
	if err == nil && bounded && deadAt.Before(since) {
		err = fmt.Errorf("%s is older than --retention, %v: the record of its operation may be gone; say --force to redrive it all the same",
			formatLetter(key, deadAt), s.retention)
	}
	return err
}

// leaveOld makes the filter pass over the letters that are too old, and says so if there are any.
func (s *settlement) leaveOld(cmd *cobra.Command, q *queue.Queue, filter *queue.DeadLetterFilter) error {
	since, bounded, err := s.since(cmd.Context(), q)
	if err != nil || !bounded || !filter.From.Before(since) {
		return err
	}
	old := *filter
	if old.Until.IsZero() || since.Before(old.Until) {
		old.Until = since
	}
	letters, err := q.DeadLetters().List(cmd.Context(), old, nil, 1)
	if len(letters) > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "letters from before %s are left alone, since they are older than --retention; --force takes them too\n", formatTime(since))
	}
	filter.From = since
	return err
}
