// Command reports makes reports that take longer than a lease: by renewing it, by deferring the message, and by
// checkpoints, with the process killed half way. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		err = nil
	case err != nil && ctx.Err() != nil:
		err = errors.New("stopped before the end")
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "reports:", err)
		os.Exit(1)
	}
}

// settings are the same for the program and the workers that it starts.
type settings struct {
	lease  time.Duration // length of a lease on the emulator
	part   time.Duration // how long a part of a report takes
	parts  int
	worker worker
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var s settings
	flags := flag.NewFlagSet("reports", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.DurationVar(&s.lease, "lease", 10*time.Second, "length of a lease; Spanner's own is 10s")
	flags.DurationVar(&s.part, "part", 5*time.Second, "how long a part of a report takes")
	flags.IntVar(&s.parts, "parts", 5, "parts of a report")
	flags.StringVar(&s.worker.addr, "worker", "", "work for the emulator at this address, until the input ends (the program starts itself so)")
	flags.StringVar(&s.worker.database, "database", "projects/demo/instances/demo/databases/reports", "the database")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := s.validate(); err != nil {
		return err
	}
	if s.worker.addr != "" {
		return s.worker.run(ctx, s, os.Stdin, out)
	}
	limit := 5*s.takes() + time.Minute
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done within %v", limit))
	defer cancel()
	err := story(ctx, s, out)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	}
	return err
}

func (s settings) validate() error {
	switch {
	case s.lease < 500*time.Millisecond || s.lease > time.Hour:
		return fmt.Errorf("-lease is %v, it must be from 500ms to 1h", s.lease)
	case s.parts < 2 || s.parts > 1000:
		return fmt.Errorf("-parts is %d, it must be from 2 to 1000", s.parts)
	case s.part < time.Millisecond || s.part > time.Hour:
		return fmt.Errorf("-part is %v, it must be from 1ms to 1h", s.part)
	}
	return nil
}

// report is how long a report takes.
func (s settings) report() time.Duration { return time.Duration(s.parts) * s.part }

// takes is about how long the whole program takes: three reports, and the wait for the message of a killed worker.
func (s settings) takes() time.Duration { return 3*s.report() + s.longest() }
