package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"golang.org/x/sync/errgroup"
)

// worker is a process that moves the clock on and runs what is due, until it is stopped, or killed. There may be any number
// of them, all alike.
type worker struct {
	name  string
	addr  string        // of the emulator
	lease time.Duration // length of a lease there
	takes time.Duration // how long a run takes
	out   io.Writer     // gets a line when a run begins
}

func (w worker) work(ctx context.Context) error {
	client, err := connect(ctx, w.addr)
	if err != nil {
		return err
	}
	defer client.Close()
	clocks, err := queue.New(client, schedules, queue.LeaseLength(w.lease))
	if err != nil {
		return err
	}
	work, err := queue.New(client, runs, queue.LeaseLength(w.lease))
	if err != nil {
		return err
	}
	for name, s := range wanted {
		if err := begin(ctx, clocks, name, s); err != nil {
			return err
		}
	}
	quiet := slog.New(slog.DiscardHandler)
	// The clock has no limit of attempts: a schedule goes on, whatever happens.
	ticking, err := processor.New(clocks, clock{clocks, work}.handler(), processor.Config{MaxAttempts: -1, Logger: quiet})
	if err != nil {
		return err
	}
	running, err := processor.New(work, processor.Tx(w.run), processor.Config{Logger: quiet})
	if err != nil {
		return err
	}
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return ticking.Run(ctx) })
	both.Go(func() error { return running.Run(ctx) })
	return both.Wait()
}

// run is what the schedules are for. It takes effect once for each slot.
func (w worker) run(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
	fmt.Fprintln(w.out, "running", m.Key[0])
	select {
	case <-time.After(w.takes): // here it would read and write
	case <-ctx.Done():
		return ctx.Err()
	}
	return tx.BufferWrite([]*spanner.Mutation{spanner.Insert("Ran",
		[]string{"Schedule", "Slot", "Worker", "CommittedAt"},
		[]any{m.Key[0], m.Key[1], w.name, spanner.CommitTimestamp})})
}

func connect(ctx context.Context, addr string) (*spanner.Client, error) {
	return spanner.NewClientWithConfig(ctx, databaseName, spanner.ClientConfig{DisableNativeMetrics: true}, emulator.ClientOptions(addr)...)
}
