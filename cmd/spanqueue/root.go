package main

import "github.com/spf13/cobra"

// newRoot makes the command line. Each command is a file of its own and is named here.
func newRoot() *cobra.Command { return newRootWith(connect) }

// newRootWith makes the command line with another way to reach databases.
func newRootWith(connect connector) *cobra.Command {
	root := &cobra.Command{
		Use:   "spanqueue",
		Short: "Exactly-once work on Cloud Spanner queues",
		Long: "Look at queues on Cloud Spanner, settle their dead letters, and run a Spanner with queues on this machine.\n\n" +
			"The commands about a queue take --database projects/P/instances/I/databases/D and --queue NAME, where NAME is a\n" +
			"Spanner queue or a queue table. They use the credentials that Google's client libraries find, or the emulator that\n" +
			"SPANNER_EMULATOR_HOST names; --role names a database role to work with.\n\n" +
			"What a program may read goes to standard output, everything else to standard error. The exit code is 0 after success\n" +
			"and after a wanted stop by SIGINT or SIGTERM, 1 otherwise. What to do with all this when something is wrong:\n" +
			"docs/operations.md of github.com/spanqueue/spanqueue.",
		SilenceUsage:  true, // the usage text would hide an error that is not about it
		SilenceErrors: true, // main prints them
	}
	root.AddCommand(
		newEmulatorCommand(),
		newStatsCommand(connect),
		newPeekCommand(connect),
		newPurgeCommand(connect),
		newDeadLettersCommand(connect),
		newReapCommand(connect),
		newVersionCommand(),
	)
	return root
}
