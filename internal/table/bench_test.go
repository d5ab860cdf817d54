package table

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/stretchr/testify/require"
)

// BenchmarkClaims has workers, each with a client of its own, empty a queue in claims of 10, acknowledging each batch in
// one transaction. It prints how often transactions were aborted, and how many candidates others had taken first. The bare
// emulator aborts every transaction beside another one; what is lost is lost anywhere.
func BenchmarkClaims(b *testing.B) {
	const messages = 2000
	for _, shards := range []int{1, 16} {
		for _, workers := range []int{1, 8, 32} {
			for _, through := range []string{"bare", "front"} {
				b.Run(fmt.Sprintf("%s/shards=%d/workers=%d", through, shards, workers), func(b *testing.B) {
					var aborts, transactions, tried, lost, calls int
					var took time.Duration
					for b.Loop() {
						s := plain()
						s.Shards = shards
						w := newWorldOfItsOwn(b, s)
						w.fill(w.bare(Options{}), messages)
						count := newRPCs()
						began := time.Now()
						t, l := w.empty(workers, through == "bare", count)
						took += time.Since(began)
						tried, lost = tried+t, lost+l
						aborts, calls = aborts+count.aborts(), calls+count.total()
						transactions += count.calls("Commit") + count.calls("Rollback")
					}
					b.ReportMetric(float64(messages*b.N)/took.Seconds(), "messages/s")
					b.ReportMetric(float64(aborts)/float64(transactions), "aborts/tx")
					b.ReportMetric(float64(lost)/float64(tried), "lost/candidate")
					b.ReportMetric(float64(calls)/float64(messages*b.N), "calls/message")
					b.ReportMetric(0, "ns/op")
				})
			}
		}
	}
}

// empty has workers take everything there is, and returns how many candidates they tried to claim and lost.
func (w *world) empty(workers int, bare bool, count *rpcs) (tried, lost int) {
	w.t.Helper()
	clients := make([]*spanner.Client, workers)
	for i := range clients {
		if bare {
			clients[i] = w.db.Bare(w.t, count.options()...)
		} else {
			clients[i] = w.db.Client(w.t, count.options()...)
		}
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, c := range clients {
		q := w.open(c, Options{LeaseLength: long})
		all.Go(func() {
			t, l, err := emptyOne(q)
			mu.Lock()
			defer mu.Unlock()
			tried, lost = tried+t, lost+l
			if err != nil {
				w.t.Error(err)
			}
		})
	}
	all.Wait()
	stats, err := w.bare(Options{}).Stats(context.Background())
	require.NoError(w.t, err)
	require.Zero(w.t, stats)
	return tried, lost
}

// emptyOne is one worker: it is done when it sees nothing more.
func emptyOne(q *Queue) (tried, lost int, err error) {
	ctx := context.Background()
	s := &stream{queue: q, end: time.Now().Add(time.Hour), batch: 10, pace: pace{bound: time.Second}, sleeper: process.join(q.name)}
	defer s.sleeper.leave()
	for {
		got, err := s.try(ctx)
		if err != nil {
			return tried, lost, err
		}
		tried, lost = tried+got.tried, lost+got.lost
		if s.quiet {
			return tried, lost, nil
		}
		if len(got.granted) == 0 {
			s.sleep(ctx, got.seen)
			continue
		}
		err = q.RunTx(ctx, backend.TxOptions{}, func(ctx context.Context, tx backend.Tx) error {
			_, err := tx.AckAll(ctx, got.granted)
			return err
		})
		if err != nil {
			return tried, lost, err
		}
	}
}
