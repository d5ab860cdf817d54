package main

import (
	"fmt"
	"io"
	"log/slog"
	"net"

	"github.com/spf13/cobra"

	"github.com/spanqueue/spanqueue/emulator"
)

func newEmulatorCommand() *cobra.Command {
	var (
		opts    emulator.Options
		verbose bool
	)
	cmd := &cobra.Command{
		Use:   "emulator",
		Short: "Run the Spanner emulator with queues, for programs in any language",
		Long: `Run the public Cloud Spanner emulator, and before it a front that knows queues and runs many
transactions at once. Once it answers it prints one line on standard output,

  SPANNER_EMULATOR_HOST=localhost:9010

which is what Google's client libraries in all languages read from the environment. It runs until
SIGINT or SIGTERM. Everything is in memory and ends with it.

The emulator is looked for in SPANNER_EMULATOR_HOST (one that runs already gets a front; the front's
own address is passed over), SPANNER_EMULATOR_BINARY, PATH, the Cloud SDK and docker. Nothing is
downloaded.`,
		Example: `  spanqueue emulator                        # in one terminal
  export SPANNER_EMULATOR_HOST=localhost:9010   # in another, before the program that wants a Spanner`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts.Logger = logger(cmd.ErrOrStderr(), verbose)
			return runEmulator(cmd, opts)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.Addr, "addr", "localhost:9010", "`host:port` to listen at; port 0 takes a free one")
	flags.StringVar(&opts.Binary, "binary", "", "`path` of an emulator_main, instead of the search")
	flags.DurationVar(&opts.Front.LeaseLength, "lease", 0, "how long a received message is leased; 0 is the service's 10s")
	flags.BoolVarP(&verbose, "verbose", "v", false, "show on standard error what the emulator prints")
	return cmd
}

func runEmulator(cmd *cobra.Command, opts emulator.Options) (err error) {
	if _, _, err := net.SplitHostPort(opts.Addr); err != nil {
		return fmt.Errorf("--addr is %q; it must be host:port, for instance localhost:9010: %w", opts.Addr, err)
	}
	ctx := cmd.Context()
	e, err := emulator.Start(ctx, opts)
	if err != nil {
		if ctx.Err() != nil {
			return nil // stopped while it was starting
		}
		return err
	}
	defer func() {
		if closeErr := e.Close(); err == nil {
			err = closeErr
		}
	}()
	if _, err := fmt.Fprintf(cmd.OutOrStdout(), "SPANNER_EMULATOR_HOST=%s\n", e.Addr()); err != nil {
		return fmt.Errorf("tell the address on standard output: %w", err)
	}
	select {
	case <-ctx.Done():
		return nil
	case <-e.Done():
		return e.Err()
	}
}

func logger(w io.Writer, verbose bool) *slog.Logger {
	level := slog.LevelInfo
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}
