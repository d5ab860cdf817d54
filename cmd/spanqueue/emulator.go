package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"

	"github.com/spf13/cobra"

	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
)

func newEmulatorCommand() *cobra.Command {
	var (
		opts    emulator.Options
		aborts  float64
		seed    uint64
		create  newDatabases
		leash   bool
		verbose bool
	)
	cmd := &cobra.Command{
		Use:   "emulator",
		Short: "Run the Spanner emulator with queues, for programs in any language",
		Long: `Run the public Cloud Spanner emulator, and before it a front that knows queues and runs many
transactions at once. Once it answers it prints one line on standard output,

  SPANNER_EMULATOR_HOST=localhost:9010

which is what Google's client libraries in all languages read from the environment. It runs until
SIGINT or SIGTERM, and then tells on standard error how many RPCs of each kind it was sent.
Everything is in memory and ends with it.

A test suite that starts it gives it a pipe as standard input and --end-with-stdin: then it cannot
outlive the suite, not even one that is killed.

--latency and --abort-probability make it less kind than a database on one machine is: round trips
take their time, and transactions have to be run again. With the same --seed they do so in the same
order.

The emulator is looked for in SPANNER_EMULATOR_HOST (one that runs already gets a front; the front's
own address is passed over), SPANNER_EMULATOR_BINARY, PATH, the Cloud SDK and docker. Nothing is
downloaded.`,
		Example: `  spanqueue emulator                        # in one terminal
  export SPANNER_EMULATOR_HOST=localhost:9010   # in another, before the program that wants a Spanner
  spanqueue emulator --database projects/test/instances/test/databases/shop --ddl schema.sql
  spanqueue emulator --latency 5ms --abort-probability 0.1 --seed 7`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !(aborts >= 0 && aborts <= 1) { // NaN is neither
				return fmt.Errorf("--abort-probability is %v; it must be 0 to 1", aborts)
			}
			ddl, err := create.statements()
			if err != nil {
				return err
			}
			opts.Logger = logger(cmd.ErrOrStderr(), verbose)
			opts.Front.Latency.Seed = seed
			ctx := cmd.Context()
			if leash {
				var cancel context.CancelFunc
				ctx, cancel = untilClosed(ctx, cmd.InOrStdin())
				defer cancel()
			}
			return runEmulator(ctx, cmd, opts, func(ctx context.Context, e *emulator.Emulator) error {
				if aborts > 0 {
					e.Front().Faults().Add(fault.Rule{Name: "--abort-probability", Match: front.InReadWrite, Probability: aborts, Seed: seed, Do: fault.Abort()})
				}
				return create.create(ctx, e, ddl)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.Addr, "addr", "localhost:9010", "`host:port` to listen at; port 0 takes a free one")
	flags.StringVar(&opts.Binary, "binary", "", "`path` of an emulator_main, instead of the search")
	flags.StringArrayVar(&create.names, "database", nil, "create `projects/P/instances/I/databases/D`, and its instance, before the address is told; may be given several times")
	flags.StringVar(&create.ddl, "ddl", "", "`file` of DDL statements, each but the last with a semicolon, for every --database")
	flags.BoolVar(&opts.IgnoreEnvironment, "ignore-environment", false, "leave SPANNER_EMULATOR_HOST and SPANNER_EMULATOR_BINARY unread, for an emulator of its own")
	flags.BoolVar(&leash, "end-with-stdin", false, "end when standard input closes, as it does when the program that holds its other end ends, however that ends")
	flags.DurationVar(&opts.Front.LeaseLength, "lease", 0, "how long a received message is leased; 0 is the service's 10s")
	flags.DurationVar(&opts.Front.RowDeletionInterval, "row-deletion-interval", 0, "how often rows that a row deletion policy lets go are deleted; 0 is every minute, less than 0 never")
	flags.Var(latencyFlag{&opts.Front.Latency}, "latency", "what every request takes besides the work, such as 5ms or 5ms+2ms or read=1ms,commit=8ms+2ms")
	flags.Float64Var(&aborts, "abort-probability", 0, "`chance` of each statement and commit of a read-write transaction to be answered ABORTED")
	flags.Uint64Var(&seed, "seed", 0, "of what happens by chance")
	flags.BoolVarP(&verbose, "verbose", "v", false, "show on standard error what the emulator prints")
	return cmd
}

// runEmulator has prepare see the emulator before anybody else does.
func runEmulator(ctx context.Context, cmd *cobra.Command, opts emulator.Options, prepare func(context.Context, *emulator.Emulator) error) (err error) {
	if _, _, err := net.SplitHostPort(opts.Addr); err != nil {
		return fmt.Errorf("--addr is %q; it must be host:port, for instance localhost:9010: %w", opts.Addr, err)
	}
	e, err := emulator.Start(ctx, opts)
	if err != nil {
		if ctx.Err() != nil {
			return nil // stopped while it was starting
		}
		return flagError{err}
	}
	served := false
	defer func() {
		if closeErr := e.Close(); err == nil {
			err = closeErr
		}
		if served {
			printRPCs(cmd.ErrOrStderr(), e.Front().RPCs())
		}
	}()
	if err := prepare(ctx, e); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	if _, err := fmt.Fprintf(cmd.OutOrStdout(), "SPANNER_EMULATOR_HOST=%s\n", e.Addr()); err != nil {
		return fmt.Errorf("tell the address on standard output: %w", err)
	}
	served = true
	select {
	case <-ctx.Done():
		return nil
	case <-e.Done():
		return e.Err()
	}
}

// untilClosed returns a context that ends, too, when in does. What reads in ends with it and not before: a read of
// standard input cannot be called off, so that it lasts, at most, as long as the program.
func untilClosed(ctx context.Context, in io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, in) // whatever ends it, nobody is there any more
	}()
	return ctx, cancel
}

// printRPCs prints the most frequent first.
func printRPCs(w io.Writer, rpcs map[string]int64) {
	if len(rpcs) == 0 {
		return
	}
	methods := slices.SortedFunc(maps.Keys(rpcs), func(a, b string) int {
		return cmp.Or(cmp.Compare(rpcs[b], rpcs[a]), cmp.Compare(a, b))
	})
	fmt.Fprintln(w, "RPCs by method:")
	for _, m := range methods {
		fmt.Fprintf(w, "%10d  %s\n", rpcs[m], m)
	}
}

func logger(w io.Writer, verbose bool) *slog.Logger {
	level := slog.LevelInfo
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}
