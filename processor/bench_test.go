package processor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
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
// many at a time. All work in turn, with the same handler: one buffered write.
//
// The emulator gets slower as it goes on: it looks at every row that a table has ever had, and its clock gets ahead by some
// 2 µs a transaction, which every strong read waits for. So each works in a database of its own, each round in an emulator
// of its own, and each is compared with its rivals of the same round. The drift that remains is printed.
//
// Not counted as RPCs of a message: receive streams, renewals, sessions, and questions for the time.
func BenchmarkProcessor(b *testing.B) {
	const (
		messages    = 500
		concurrency = 16
		rounds      = 8 // twice each of the four orders
	)
	x := &bench{b: b, messages: messages}

	one := func(_ context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error { return write(tx, m) }
	failsFirst := func(_ context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		if m.Attempt == 1 {
			return processor.Retry(errors.New("once"), 0)
		}
		return write(tx, m)
	}
	fails := func(context.Context, *spanner.ReadWriteTransaction, *queue.Message) error {
		return errors.New("always")
	}
	many := func(_ context.Context, tx *spanner.ReadWriteTransaction, ms []*queue.Message) error {
		return write(tx, ms...)
	}
	workers := func(n int) func(*processor.Config) { return func(c *processor.Config) { c.Concurrency = n } }

	linger := func(c *processor.Config) { c.Linger = 20 * time.Millisecond }

	var loop, guarded, ours, batches result
	contenders := []func(){
		func() { loop.add(x.loop("hand-written loop", concurrency, false)) },
		func() { ours.add(x.processor("one by one", processor.Tx(one), processor.Done, workers(concurrency))) },
		func() { guarded.add(x.loop("hand-written loop, guarded", concurrency, true)) },
		func() {
			batches.add(x.processor("batches of 50", processor.Batch(many), processor.Done, workers(2), linger))
		},
	}
	for b.Loop() {
		for round := range rounds {
			x.emulator = emulatortest.New(b, emulator.Options{})
			// In turn, each goes first.
			for i := range contenders {
				contenders[(round+i)%len(contenders)]()
			}
			if err := x.emulator.Close(); err != nil {
				b.Error(err)
			}
		}
		x.emulator = emulatortest.New(b, emulator.Options{})
		x.old = true
		x.processor("one by one, in a backlog", processor.Tx(one), processor.Done, workers(concurrency))
		x.processor("batches of 50, in a backlog", processor.Batch(many), processor.Done, workers(2), linger)
		x.old = false
		x.processor("retried once", processor.Tx(failsFirst), processor.Done, workers(concurrency))
		x.processor("dead-lettered at once", processor.Tx(fails), processor.DeadLettered, workers(concurrency), func(c *processor.Config) { c.MaxAttempts = 1 })
	}
	fmt.Printf("medians of %d: hand-written loop %.0f/s, with the guard %.0f/s, one by one %.0f/s, batches of 50 %.0f/s; the last round's loop at %.2f of the first's\n",
		rounds, loop.rate(), guarded.rate(), ours.rate(), batches.rate(), loop.rates[rounds-1]/loop.rates[0])
	fmt.Printf("medians of the rounds' ratios: one by one %.2f of the loop, %.2f of the guarded one; batches of 50 %.1f of one by one\n",
		ours.beside(loop), ours.beside(guarded), batches.beside(ours))
	b.ReportMetric(ours.beside(loop), "one/loop")
	b.ReportMetric(ours.beside(guarded), "one/guarded")
	b.ReportMetric(batches.beside(ours), "batch/one")
	b.ReportMetric(ours.rpcs, "rpcs/message")
	b.ReportMetric(batches.rpcs, "rpcs/batched")
}

// result collects the rounds of one way to work.
type result struct {
	rates []float64
	rpcs  float64
}

func (r *result) add(rate, rpcs float64) { r.rates, r.rpcs = append(r.rates, rate), rpcs }

func (r *result) rate() float64 { return median(r.rates) }

// beside is how fast it was beside a rival in the same round.
func (r *result) beside(rival result) float64 {
	ratios := make([]float64, len(r.rates))
	for i := range ratios {
		ratios[i] = r.rates[i] / rival.rates[i]
	}
	return median(ratios)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

type bench struct {
	b        *testing.B
	emulator *emulatortest.Emulator
	messages int
	old      bool // the messages have been due for a minute

	// of the way to work that is measured
	db     *emulatortest.DB
	client *spanner.Client
	queue  *queue.Queue
}

// fill makes a database with a full queue.
func (x *bench) fill() {
	x.db = x.emulator.Database(x.b, append(append([]string{testQueue.DDL(), effectsTable},
		schema.Attempts{Queue: testQueue}.Statements()...), schema.DeadLetters{Queue: testQueue}.Statements()...)...)
	x.client = x.db.Client(x.b)
	q, err := queue.New(x.client, testQueue)
	if err != nil {
		x.b.Fatal(err)
	}
	x.queue = q
	at := time.Now().Add(-time.Minute).Truncate(time.Microsecond)
	var old []spanner.Statement
	out := make([]queue.Outgoing, x.messages)
	for i := range out {
		out[i] = queue.Outgoing{Key: spanner.Key{fmt.Sprint(i)}}
		if x.old { // a mutation would make it now
			out[i].DeliverTime = at
			statement, err := x.queue.SendStatement(out[i])
			if err != nil {
				x.b.Fatal(err)
			}
			old = append(old, statement)
		}
	}
	if x.old {
		_, err = x.client.ReadWriteTransaction(x.b.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			_, err := tx.BatchUpdate(ctx, old)
			return err
		})
	} else {
		err = x.queue.Send(x.b.Context(), out)
	}
	if err != nil {
		x.b.Fatal(err)
	}
}

// counted returns how many RPCs the front has seen that belong to messages.
func (x *bench) counted() int64 {
	all := x.db.Front().RPCs()
	return all["ExecuteSql"] + all["ExecuteBatchDml"] + all["Commit"] + all["Rollback"] + all["BeginTransaction"] + all["StreamingRead"] + all["Read"]
}

// time runs the work from its start to the last message's end.
func (x *bench) time(name string, work func(ctx context.Context) (ended func())) (rate, rpcs float64) {
	before := x.counted()
	ctx, cancel := context.WithCancel(x.b.Context())
	begun := time.Now()
	ended := work(ctx)
	took := time.Since(begun)
	rpcs = float64(x.counted()-before) / float64(x.messages)
	cancel()
	ended()
	rate = float64(x.messages) / took.Seconds()
	fmt.Printf("  %-28s %4d messages in %8v: %6.0f/s, %5.2f RPCs a message\n", name, x.messages, took.Round(time.Millisecond), rate, rpcs)
	return rate, rpcs
}

func write(tx *spanner.ReadWriteTransaction, ms ...*queue.Message) error {
	writes := make([]*spanner.Mutation, len(ms))
	for i, m := range ms {
		writes[i] = spanner.InsertOrUpdate("Effects", []string{"Id", "N"}, []any{m.Key[0], 1})
	}
	return tx.BufferWrite(writes)
}

func (x *bench) processor(name string, h processor.Handler, outcome processor.Outcome, changes ...func(*processor.Config)) (rate, rpcs float64) {
	config := processor.Config{Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Backoff: processor.Backoff{Min: time.Millisecond}}
	for _, change := range changes {
		change(&config)
	}
	x.fill()
	p, err := processor.New(x.queue, h, config)
	if err != nil {
		x.b.Fatal(err)
	}
	return x.time(name, func(ctx context.Context) func() {
		ran := make(chan error, 1)
		go func() { ran <- p.Run(ctx) }()
		for left := int64(x.messages); left > 0 && ctx.Err() == nil; {
			// Looking takes time from what is looked at: seldom until the end is near.
			time.Sleep(min(time.Millisecond*time.Duration(1+left/10), 10*time.Millisecond))
			left = int64(x.messages) - p.Figures().Deliveries[outcome]
		}
		return func() {
			if err := <-ran; err != nil {
				x.b.Error(err)
			}
		}
	})
}

// loop is the documentation's loop: one stream, its rows handed to as many goroutines. With the guard it asserts the due
// time besides, as the library does. On the emulator, which looks at every row for a DELETE, that has its price.
func (x *bench) loop(name string, concurrency int, guard bool) (rate, rpcs float64) {
	sql := "DELETE FROM Q WHERE Id = @id ASSERT_ROWS_MODIFIED 1"
	if guard {
		sql = "DELETE FROM Q WHERE Id = @id AND DeliverTime = @seen ASSERT_ROWS_MODIFIED 1"
	}
	x.fill()
	return x.time(name, func(ctx context.Context) func() {
		rows := make(chan *queue.Message)
		var left, all sync.WaitGroup
		left.Add(x.messages)
		for range concurrency {
			all.Go(func() {
				for m := range rows {
					_, err := x.client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
						params := map[string]any{"id": m.Key[0]}
						if guard {
							params["seen"] = m.DeliverTime
						}
						_, err := tx.Update(ctx, spanner.Statement{SQL: sql, Params: params})
						if err != nil {
							return err
						}
						return write(tx, m)
					})
					if err != nil {
						x.b.Error(err)
					}
					left.Done()
				}
			})
		}
		all.Go(func() {
			defer close(rows)
			for m, err := range x.queue.Receive(ctx, queue.ReceiveOptions{MaxDuration: time.Minute, MaxBatch: 20}) {
				if err != nil {
					return
				}
				rows <- m
			}
		})
		left.Wait()
		return all.Wait
	})
}
