package front_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"
	"google.golang.org/api/option"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
)

// BenchmarkTransactions compares the front with the bare emulator, in one run: each of 600 transactions takes a row
// out with an asserted delete and buffers one write. The bare emulator gets a client for each worker, because it keeps
// one transaction a session and a client has one session; the front one client for all. The four take turns in slices
// of 100 transactions, so that a machine with other work to do slows all of them.
//
//	go test -run '^$' -bench BenchmarkTransactions -benchtime 1x ./emulator/front
func BenchmarkTransactions(b *testing.B) {
	const rows, slice = 600, 100
	e := emulatortest.New(b, emulator.Options{})
	for range b.N {
		bare1 := newContender(b, e, "bare, 1 worker", rows, 1, 1, (*emulatortest.DB).Bare)
		bare16 := newContender(b, e, "bare, 16 clients", rows, 16, 16, (*emulatortest.DB).Bare)
		front1 := newContender(b, e, "front, 1 worker", rows, 1, 1, (*emulatortest.DB).Client)
		front16 := newContender(b, e, "front, 16 on one client", rows, 16, 1, (*emulatortest.DB).Client)
		all := []*contender{bare1, bare16, front1, front16}
		for range rows / slice {
			for _, c := range all {
				c.run(b.Context(), slice)
			}
		}
		fmt.Printf("\n%-28s %8s %6s %10s %7s\n", "600 rows, delete and write", "txn/s", "tries", "tries max", "errors")
		for _, c := range all {
			c.check(b, rows)
			fmt.Printf("%-28s %8.0f %6.2f %10d %7d\n", c.name, c.rate(), float64(c.tries)/rows, c.most, c.failed)
		}
		overBare, ofOne := front16.rate()/bare16.rate(), front16.rate()/front1.rate()
		fmt.Printf("16 through the front: %.2f of 16 bare (wanted: 1.5), %.2f of 1 through the front (wanted: 0.8)\n", overBare, ofOne)
		b.ReportMetric(front16.rate(), "front16-txn/s")
		b.ReportMetric(overBare, "front16/bare16")
		b.ReportMetric(ofOne, "front16/front1")
		if front1.most != 1 || front16.most != 1 || front1.failed+front16.failed > 0 {
			b.Errorf("a transaction through the front needed more than one try, or failed")
		}
	}
}

// contender is one way to run the transactions, with a database of its own.
type contender struct {
	name    string
	db      *emulatortest.DB
	clients []*spanner.Client
	workers int

	next   int64 // the row that is next
	took   time.Duration
	mu     sync.Mutex
	done   int
	tries  int64
	most   int64 // tries of one transaction
	failed int
}

func newContender(b *testing.B, e *emulatortest.Emulator, name string, rows, workers, clients int, newClient func(*emulatortest.DB, testing.TB, ...option.ClientOption) *spanner.Client) *contender {
	b.Helper()
	c := &contender{name: name, workers: workers, db: e.Database(b,
		"CREATE TABLE Todo (Id INT64 NOT NULL) PRIMARY KEY (Id)",
		"CREATE TABLE Done (Id INT64 NOT NULL) PRIMARY KEY (Id)")}
	for range clients {
		client := newClient(c.db, b)
		_, err := client.Single().ReadRow(b.Context(), "Todo", spanner.Key{0}, []string{"Id"})
		require.Equal(b, codes.NotFound, spanner.ErrCode(err)) // the session is made
		c.clients = append(c.clients, client)
	}
	fill := make([]*spanner.Mutation, rows)
	for i := range fill {
		fill[i] = spanner.Insert("Todo", []string{"Id"}, []any{i})
	}
	_, err := c.clients[0].Apply(b.Context(), fill)
	require.NoError(b, err)
	return c
}

// run runs the next n transactions, shared by the workers.
func (c *contender) run(ctx context.Context, n int) {
	var next atomic.Int64
	next.Store(c.next)
	c.next += int64(n)
	begin := time.Now()
	var workers sync.WaitGroup
	for w := range c.workers {
		workers.Go(func() {
			for id := next.Add(1) - 1; id < c.next; id = next.Add(1) - 1 {
				c.one(ctx, c.clients[w%len(c.clients)], id)
			}
		})
	}
	workers.Wait()
	c.took += time.Since(begin)
}

func (c *contender) one(ctx context.Context, client *spanner.Client, id int64) {
	var tries int64
	_, err := client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		tries++
		_, err := tx.Update(ctx, spanner.Statement{
			SQL:    "DELETE FROM Todo WHERE Id = @id ASSERT_ROWS_MODIFIED 1",
			Params: map[string]any{"id": id},
		})
		if err != nil {
			return err
		}
		return tx.BufferWrite([]*spanner.Mutation{spanner.Insert("Done", []string{"Id"}, []any{id})})
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done++
	c.tries += tries
	c.most = max(c.most, tries)
	if err != nil {
		c.failed++
	}
}

func (c *contender) rate() float64 { return float64(c.done) / c.took.Seconds() }

// check shows that what was measured has happened.
func (c *contender) check(b *testing.B, rows int) {
	b.Helper()
	require.Equal(b, rows, c.done)
	if c.failed == 0 {
		require.EqualValues(b, rows, rowsOf(b, c.clients[0], "SELECT COUNT(*) FROM Done"))
	}
}
