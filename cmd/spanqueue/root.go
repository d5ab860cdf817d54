package main

import "github.com/spf13/cobra"

// newRoot makes the command line. Each command is a file of its own and is named here.
func newRoot() *cobra.Command { return newRootWith(openQueue) }

// newRootWith makes the command line with another way to open queues.
func newRootWith(open opener) *cobra.Command {
	root := &cobra.Command{
		Use:           "spanqueue",
		Short:         "Exactly-once work on Cloud Spanner queues",
		SilenceUsage:  true, // the usage text would hide an error that is not about it
		SilenceErrors: true, // main prints them
	}
	root.AddCommand(
		newEmulatorCommand(),
		newStatsCommand(open),
		newPeekCommand(open),
		newPurgeCommand(open),
		newDeadLettersCommand(open),
		newReapCommand(connect),
		newVersionCommand(),
	)
	return root
}
