// Command payments books rides over HTTP, charges each once at a payment
// gateway and confirms it by one mail, while customers click twice, lose
// patience and try again, the gateway fails before, after and without an
// answer, and the database aborts transactions and loses answers of commits.
// Then it counts what there is.
//
// The files, in the order in which a booking meets them:
//
//	customer.go    the customers and their app, with backoff.go: when it comes again
//	api.go         the service: who asks, and how POST /rides is mounted
//	ride.go        the handler: the part to copy
//	payment.go     its call of the gateway
//	gateway/       the gateway, which imports nothing of ours
//	mail.go        the worker that takes the messages and sends the mails
//	mailserver/    the mail server, which imports nothing of ours either
//	database.go    the emulator, with the queue and the tables of schema.go
//	faults.go      what goes wrong meanwhile
//	demo.go        one run, from its beginning to its end; serve.go starts servers
//	ledger.go      what there is then
//	verdict.go     whether that is what there must be
//	report.go      all of it for people to read
//	unprotected.go the same without records: what goes wrong then
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
	rides       int
	seed        uint64
	unprotected bool
	verbose     bool
}

func parseOptions(args []string, usage io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("payments", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.IntVar(&o.rides, "rides", 200, "how many rides are booked, 60 to 1000")
	flags.Uint64Var(&o.seed, "seed", 1, "of the faults and of what customers do")
	flags.BoolVar(&o.unprotected, "unprotected", false, "keep no records and send no keys, to see what happens")
	flags.BoolVar(&o.verbose, "verbose", false, "log what the library and the emulator say")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var err error
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("there are no arguments, found %q", flags.Arg(0))
	case o.rides < 60 || o.rides > 1000:
		err = fmt.Errorf("-rides is %d, it must be from 60 to 1000", o.rides)
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
	result, err := play(ctx, o, out, log)
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
