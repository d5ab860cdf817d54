// Command points grants loyalty points for purchases that it takes from a Spanner queue, each exactly once, on the public
// emulator, while messages are sent twice, answers of commits are lost, transactions are aborted and a worker is stopped.
// Then it compares the database with the file that the purchases came from.
//
// The files, in the order in which a purchase meets them:
//
//	file.go        the purchases, and expected.go what must become of them
//	database.go    the emulator, with the queue and the tables of schema.go
//	producer.go    sends the purchases, a third of them twice
//	worker.go      the processors that take them, and crew.go who starts and stops those
//	grant.go       the handler, with receipt.go (its operations) and answer.go: the part to copy
//	faults.go      what the database does to the workers meanwhile
//	demo.go        one run, from its beginning to its end; progress.go shows how far it is
//	ledger.go      what stands in the database then
//	verdict.go     whether that is what must stand there
//	report.go      all of it for people to read
//	unprotected.go the same without the library's guard and without receipts: what goes wrong then
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
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
	orders      int
	workers     int
	seed        uint64
	unprotected bool
	verbose     bool
}

func parseOptions(args []string, usage io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("points", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.IntVar(&o.orders, "orders", 1000, "how many orders of the file to take, 200 to 1000")
	flags.IntVar(&o.workers, "workers", 4, "how many workers there are, 1 to 16")
	flags.Uint64Var(&o.seed, "seed", 1, "of the faults, and of which messages are sent twice")
	flags.BoolVar(&o.unprotected, "unprotected", false, "acknowledge by a plain DELETE and keep no receipts, to see what happens")
	flags.BoolVar(&o.verbose, "verbose", false, "log what the library and the emulator say")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var err error
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("there are no arguments, found %q", flags.Arg(0))
	case o.orders < 200 || o.orders > 1000:
		err = fmt.Errorf("-orders is %d, it must be from 200 to 1000", o.orders)
	case o.workers < 1 || o.workers > 16:
		err = fmt.Errorf("-workers is %d, it must be from 1 to 16", o.workers)
	}
	if err != nil {
		fmt.Fprintln(usage, err)
	}
	return o, err
}

// run is the program without its process.
func run(ctx context.Context, args []string, out, errOut io.Writer) (exitCode int) {
	o, err := parseOptions(args, errOut)
	if errors.Is(err, flag.ErrHelp) {
		return exitGood
	}
	if err != nil {
		return exitUsage
	}
	log := slog.New(slog.DiscardHandler)
	if o.verbose {
		log = slog.New(slog.NewTextHandler(errOut, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}

	workers := handling(handler)
	if o.unprotected {
		workers = unprotectedWorker
	}
	result, err := play(ctx, o, workers, out, log)
	switch {
	case err != nil && ctx.Err() != nil:
		fmt.Fprintln(out, "interrupted; everything has ended")
		return exitInterrupted
	case err != nil:
		fmt.Fprintln(errOut, err)
		return exitBad
	case o.unprotected:
		return result.reportUnprotected(out)
	}
	return result.report(out)
}
