// Command reports makes reports that take longer than a lease: by renewing it, by deferring the message, and by
// checkpoints, with the process killed half way. See README.md.
package main

import (
	"context"
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
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
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
	flags.StringVar(&s.worker.addr, "worker", "", "work for the emulator at this address, until killed (the program starts itself so)")
	flags.StringVar(&s.worker.database, "database", "projects/demo/instances/demo/databases/reports", "the database")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if s.worker.addr != "" {
		return s.worker.run(ctx, s, out)
	}
	return story(ctx, s, out)
}
