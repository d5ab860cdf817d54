// Command schedule runs recurring work without a leader and without a double run: three worker processes share two schedules,
// one of them is killed in the middle of a run, and for some seconds there is none at all. See README.md.
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

const databaseName = "projects/demo/instances/demo/databases/schedule"

// wanted are the schedules that there shall be.
var wanted = map[string]schedule{
	"invoices": {Spec: "* * * * * *", CatchUp: true}, // an invoice that was due when nobody was there is still due
	"snapshot": {Spec: "* * * * * *"},                // one of the past can not be taken any more
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	w := worker{out: out}
	flags := flag.NewFlagSet("schedule", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.DurationVar(&w.lease, "lease", 2*time.Second, "length of a lease; Spanner's own is 10s")
	flags.DurationVar(&w.takes, "takes", 100*time.Millisecond, "how long a run takes")
	flags.StringVar(&w.name, "worker", "", "be the worker of this name; the program starts itself so")
	flags.StringVar(&w.addr, "addr", "", "with -worker: where the emulator is")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if w.name == "" {
		return story(ctx, w, out)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer stop() // the end of our input is the order to stop, and the end of whoever started us
		_, _ = io.Copy(io.Discard, in)
	}()
	return w.work(ctx)
}
