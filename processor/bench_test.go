package processor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/schema"
)

// BenchmarkProcessor prints what a message costs in RPCs, and the throughput beside the loop that the service's
// documentation shows, written out: a receive stream, and for each message a transaction that acknowledges and writes, as
// many at a time. Both work on the same emulator, in turn, with the same handler: one buffered write.
//
// Not counted as RPCs of a message: receive streams, renewals, sessions, and questions for the time.
func BenchmarkProcessor(b *testing.B) {
	const (
		messages    = 600
		concurrency = 16
		rounds      = 3
	)
	e := emulatortest.New(b, emulator.Options{})
	db := e.Database(b, append(append([]string{testQueue.DDL(), effectsTable},
		schema.Attempts{Queue: testQueue}.Statements()...), schema.DeadLetters{Queue: testQueue}.Statements()...)...)
	client := db.Client(b)
	q, err := queue.New(client, testQueue)
	if err != nil {
		b.Fatal(err)
	}
	bench := &bench{b: b, db: db, client: client, queue: q, messages: messages}

	var ours, loop []float64
	for b.Loop() {
		for range rounds {
			ours = append(ours, bench.measure("processor", func(ctx context.Context, done func()) { bench.processor(ctx, concurrency, done) }))
			loop = append(loop, bench.measure("hand-written loop", func(ctx context.Context, done func()) { bench.loop(ctx, concurrency, done) }))
		}
	}
	ratio := median(ours) / median(loop)
	fmt.Printf("one by one, %d messages, %d at a time: processor %.0f/s, hand-written loop %.0f/s, ratio %.2f (medians of %d)\n",
		messages, concurrency, median(ours), median(loop), ratio, len(ours))
	b.ReportMetric(ratio, "ratio")
	b.ReportMetric(bench.rpcs, "rpcs/message")
}

type bench struct {
	b        *testing.B
	db       *emulatortest.DB
	client   *spanner.Client
	queue    *queue.Queue
	messages int
	round    int
	rpcs     float64
}

// measure sends the messages and then times their handling, from the start of the worker to the last effect.
func (x *bench) measure(name string, work func(context.Context, func())) float64 {
	x.b.Helper()
	x.round++
	out := make([]queue.Outgoing, x.messages)
	for i := range out {
		out[i] = queue.Outgoing{Key: spanner.Key{fmt.Sprintf("r%d-%d", x.round, i)}}
	}
	if err := x.queue.Send(x.b.Context(), out); err != nil {
		x.b.Fatal(err)
	}
	before := x.counted()
	ctx, cancel := context.WithCancel(x.b.Context())
	defer cancel()
	var left sync.WaitGroup
	left.Add(x.messages)
	begun := time.Now()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		work(ctx, left.Done)
	}()
	left.Wait()
	took := time.Since(begun)
	cancel()
	<-ended
	rpcs := float64(x.counted()-before) / float64(x.messages)
	fmt.Printf("  %-18s %4d messages in %8v: %5.0f/s, %.2f RPCs a message\n", name, x.messages, took.Round(time.Millisecond),
		float64(x.messages)/took.Seconds(), rpcs)
	if name == "processor" {
		x.rpcs = rpcs
	}
	return float64(x.messages) / took.Seconds()
}

// counted returns how many RPCs the front has seen that belong to messages.
func (x *bench) counted() int64 {
	all := x.db.Front().RPCs()
	return all["ExecuteSql"] + all["ExecuteBatchDml"] + all["Commit"] + all["Rollback"] + all["BeginTransaction"] + all["StreamingRead"] + all["Read"]
}

func write(tx *spanner.ReadWriteTransaction, id any) error {
	return tx.BufferWrite([]*spanner.Mutation{spanner.InsertOrUpdate("Effects", []string{"Id", "N"}, []any{id, 1})})
}

func (x *bench) processor(ctx context.Context, concurrency int, done func()) {
	p, err := processor.New(x.queue, processor.Tx(func(_ context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		return write(tx, m.Key[0])
	}), processor.Config{Concurrency: concurrency, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		x.b.Error(err)
		return
	}
	counted := make(chan struct{})
	go func() {
		defer close(counted)
		var seen int64
		for ctx.Err() == nil {
			for ; seen < p.Figures().Deliveries[processor.Done]; seen++ {
				done()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	if err := p.Run(ctx); err != nil {
		x.b.Error(err)
	}
	<-counted
}

// loop is the documentation's loop: one stream, its rows handed to as many goroutines.
func (x *bench) loop(ctx context.Context, concurrency int, done func()) {
	rows := make(chan *queue.Message)
	var workers sync.WaitGroup
	for range concurrency {
		workers.Go(func() {
			for m := range rows {
				_, err := x.client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
					n, err := tx.Update(ctx, spanner.Statement{
						SQL:    "DELETE FROM Q WHERE Id = @id ASSERT_ROWS_MODIFIED 1",
						Params: map[string]any{"id": m.Key[0]},
					})
					if err != nil {
						return err
					}
					if n != 1 {
						return errors.New("not one row")
					}
					return write(tx, m.Key[0])
				})
				if err != nil {
					x.b.Error(err)
				}
				done()
			}
		})
	}
	defer workers.Wait()
	defer close(rows)
	for ctx.Err() == nil {
		for m, err := range x.queue.Receive(ctx, queue.ReceiveOptions{MaxDuration: time.Minute, MaxBatch: 20}) {
			if err != nil {
				break
			}
			select {
			case rows <- m:
			case <-ctx.Done():
			}
		}
	}
}

func median(values []float64) float64 {
	sorted := append([]float64(nil), values...)
	for i := range sorted {
		for j := i + 1; j < len(sorted); j++ {
			if sorted[j] < sorted[i] {
				sorted[i], sorted[j] = sorted[j], sorted[i]
			}
		}
	}
	return sorted[len(sorted)/2]
}
