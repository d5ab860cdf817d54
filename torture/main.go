// Command torture shows whether the promise holds while everything goes wrong: worker processes are killed and frozen, the
// emulator is paused, transactions are aborted, answers are lost and connections cut, and producers send again what they
// do not know to have been sent. Each message adds 1 to a number. In the end every number must be 1.
//
// The files, in the order in which a message meets them:
//
//	kind.go       three queues, native or tables, through the front or on the bare emulator
//	database.go   the emulator, with them and the table of the numbers
//	producer.go   sends, again and again until it is known that it has sent; backlog.go holds it back
//	worker.go     a worker process: a processor for each queue, and handlers.go what they do
//	wire.go       what its client sends and gets, and count.go how that is counted
//	alone.go      one transaction at a time, on the bare emulator
//	event.go      what a worker tells of itself, so that it is known what a killed one was at
//	process.go    a worker process as seen from here, and crew.go all of them
//	chaos.go      kills, freezes and pauses; faults.go what the database does besides
//	recovery.go   how long it takes until what a killed worker had in its hands is settled
//	play.go       one run, from its beginning to its end
//	verdict.go    what must hold in the end
//	report.go     all of it for people to read; tail.go has the workers' last words when something has failed
//
// The program runs itself as its workers. However it ends, nothing of it stays behind.
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
	if len(os.Args) > 1 && os.Args[1] == workerRole {
		os.Exit(beWorker(os.Args[2:], os.Stdin, os.Stdout, os.Stderr, processors))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], ownWorkers(workerRole), os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Exit codes.
const (
	exitGood        = 0
	exitBad         = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// options are the flags.
type options struct {
	setting
	duration time.Duration
	workers  int
	seed     uint64
	verbose  bool
}

func parseOptions(args []string, usage io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("torture", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.DurationVar(&o.duration, "duration", time.Minute, "how long to go on, at least 1s; what is in the queues then is still handled")
	flags.StringVar(&o.Queue, "queue", nativeQueue, "what the messages are in: native (queues) or table (queue tables)")
	flags.StringVar(&o.Emulator, "emulator", onFront, "what the workers talk to: front, with all faults, or bare, for queue tables only: kills, freezes and pauses")
	flags.IntVar(&o.workers, "workers", 4, "how many worker processes there are, 2 to 16")
	flags.Uint64Var(&o.seed, "seed", 1, "of the faults, and of who is killed when")
	flags.BoolVar(&o.verbose, "verbose", false, "show what the workers log")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var err error
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("there are no arguments, found %q", flags.Arg(0))
	case o.duration < time.Second:
		err = fmt.Errorf("-duration is %v, it must be at least 1s", o.duration)
	case o.workers < 2 || o.workers > 16:
		err = fmt.Errorf("-workers is %d, it must be from 2 to 16", o.workers)
	default:
		err = o.setting.validate()
	}
	if err != nil {
		fmt.Fprintln(usage, err)
	}
	return o, err
}

// run is the program without its process.
func run(ctx context.Context, args []string, hire hire, out, errOut io.Writer) (exitCode int) {
	o, err := parseOptions(args, errOut)
	if errors.Is(err, flag.ErrHelp) {
		return exitGood
	}
	if err != nil {
		return exitUsage
	}
	r, err := play(ctx, o, hire, out, errOut)
	switch {
	case err != nil && ctx.Err() != nil:
		fmt.Fprintln(out, "interrupted; everything has ended")
		return exitInterrupted
	case err != nil:
		fmt.Fprintln(errOut, err)
		return exitBad
	}
	return r.report(out)
}
