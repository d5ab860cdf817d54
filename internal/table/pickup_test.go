package table

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/native"
	"github.com/stretchr/testify/require"
)

// BenchmarkPickup prints how long a message is on its way from the return of its send to its receiver, under light load:
// 10 messages a second with random gaps. A queue table with the sender in the same process and in another one, and a Spanner
// queue beside it, all through the front.
func BenchmarkPickup(b *testing.B) {
	table := plain()
	table.Queue.Name = "Tasks"
	spannerQueue := plain().Queue
	spannerQueue.Name = "Native"
	for _, c := range []struct {
		name, queue string
		send        func(ctx context.Context, q backend.Queue, m backend.Outgoing) error
	}{
		{"table/same-process", "Tasks", func(ctx context.Context, q backend.Queue, m backend.Outgoing) error {
			return q.Send(ctx, []backend.Outgoing{m})
		}},
		{"table/other-process", "Tasks", func(ctx context.Context, q backend.Queue, m backend.Outgoing) error {
			_, err := q.Client().Apply(ctx, []*spanner.Mutation{spanner.InsertMap("Tasks", map[string]any{
				"Id": m.Key[0], "Payload": m.Payload, "SentAt": spanner.CommitTimestamp,
			})})
			return err
		}},
		{"native", "Native", func(ctx context.Context, q backend.Queue, m backend.Outgoing) error {
			return q.Send(ctx, []backend.Outgoing{m})
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			db := emulatortest.New(b, emulator.Options{}).Database(b, append(table.Statements(), spannerQueue.DDL())...)
			open := func() backend.Queue {
				client := db.Client(b)
				var q backend.Queue
				var err error
				if c.queue == "Native" {
					q, err = native.New(client, spannerQueue, native.Options{})
				} else {
					q, err = New(client, table, Options{})
				}
				require.NoError(b, err)
				return q
			}
			var delays []time.Duration
			for b.Loop() {
				delays = append(delays, pickups(b, open(), open(), c.send, 60)...)
			}
			slices.Sort(delays)
			b.ReportMetric(float64(delays[len(delays)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(delays[len(delays)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func pickups(b *testing.B, sender, receiver backend.Queue, send func(context.Context, backend.Queue, backend.Outgoing) error, n int) []time.Duration {
	ctx, cancel := context.WithCancel(context.Background())
	arrived := make(chan time.Time, n)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, err := range receiver.Receive(ctx, backend.ReceiveRequest{MaxDuration: time.Hour}) {
			if err != nil {
				return
			}
			arrived <- time.Now()
		}
	}()
	var delays []time.Duration
	for i := range n {
		gap := time.NewTimer(time.Duration(rand.Int64N(int64(200 * time.Millisecond))))
		<-gap.C
		m, err := sender.Check(message(fmt.Sprint(i)))
		require.NoError(b, err)
		require.NoError(b, send(ctx, sender, m))
		sent := time.Now()
		delays = append(delays, max((<-arrived).Sub(sent), 0))
	}
	cancel()
	<-ended
	return delays
}
