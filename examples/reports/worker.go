package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
)

// worker is a process that makes reports by checkpoints until its input ends, as it does when whoever started it has ended.
type worker struct {
	addr     string // of the emulator
	database string
}

func (w worker) run(ctx context.Context, o settings, in io.Reader, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		stop()
	}()
	client, err := connect(ctx, w.addr, w.database)
	if err != nil {
		return err
	}
	defer client.Close()
	p, err := newProcessor(client, o, byCheckpoints(o, func(made int) { fmt.Fprintln(out, "made part", made) }))
	if err != nil {
		return err
	}
	return p.Run(ctx)
}

func connect(ctx context.Context, addr, database string) (*spanner.Client, error) {
	return spanner.NewClientWithConfig(ctx, database, spanner.ClientConfig{DisableNativeMetrics: true}, emulator.ClientOptions(addr)...)
}

func newProcessor(client *spanner.Client, o settings, h processor.Handler) (*processor.Processor, error) {
	q, err := queue.New(client, requests, queue.LeaseLength(o.lease))
	if err != nil {
		return nil, err
	}
	return processor.New(q, h, processor.Config{
		Concurrency:    1,
		HandlerTimeout: o.longest(),
		Logger:         slog.New(slog.DiscardHandler),
	})
}
