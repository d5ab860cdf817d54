// Command spanqueue is the operator's tool for queues on Cloud Spanner.
//
//	spanqueue emulator --addr localhost:9010    a Spanner with queues on this machine, for programs in any language
//	spanqueue stats|peek|purge                  a queue's messages
//	spanqueue deadletters list|show|redrive|discard
//	spanqueue reap                              expired operation records
//	spanqueue version
//
// The commands about a queue take --database projects/P/instances/I/databases/D and --queue NAME.
//
// They wait for --connect-timeout (10 s) for the database's first answer, and say so after a second. What removes messages
// for good wants --yes. With --json, stats, peek and deadletters list and show print an object a line.
//
// What a program may read goes to standard output, everything else to standard error. The exit code is 0 after success
// and after a wanted stop by SIGINT or SIGTERM, 1 otherwise. A second signal ends it at once.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(run()) }

func run() (code int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the first signal asks; the second one meets the system's own behaviour
	if err := newRoot().ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "spanqueue: %v\n", err)
		return 1
	}
	return 0
}
