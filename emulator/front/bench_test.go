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
	"golang.org/x/sync/errgroup"
	"google.golang.org/api/option"

	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
)

// BenchmarkTransactions compares the front with the bare emulator, in one run: each of 600 transactions takes a row
// out with an asserted delete and buffers one write. The bare emulator gets a client for each worker, because it keeps
// one transaction a session and a client has one session; the front one client for all.
//
//	go test -run '^$' -bench BenchmarkTransactions -benchtime 1x ./emulator/front
func BenchmarkTransactions(b *testing.B) {
	const rows = 600
	e := emulatortest.New(b, emulator.Options{})
	for range b.N {
		bare1 := measure(b, e, 1, rows, (*emulatortest.DB).Bare, 1)
		bare16 := measure(b, e, 16, rows, (*emulatortest.DB).Bare, 16)
		front1 := measure(b, e, 1, rows, (*emulatortest.DB).Client, 1)
		front16 := measure(b, e, 16, rows, (*emulatortest.DB).Client, 1)

		fmt.Printf("\n%-28s %8s %6s %10s %7s\n", "600 rows, delete and write", "txn/s", "tries", "tries max", "errors")
		for _, m := range []struct {
			name string
			of   measured
		}{
			{"bare, 1 worker", bare1}, {"bare, 16 clients", bare16},
			{"front, 1 worker", front1}, {"front, 16 on one client", front16},
		} {
			fmt.Printf("%-28s %8.0f %6.2f %10d %7d\n", m.name, m.of.rate, m.of.tries, m.of.most, m.of.errors)
		}
		overBare, ofOne := front16.rate/bare16.rate, front16.rate/front1.rate
		fmt.Printf("16 through the front: %.2f of 16 bare (wanted: 1.5), %.2f of 1 through the front (wanted: 0.8)\n", overBare, ofOne)
		b.ReportMetric(front16.rate, "front16-txn/s")
		b.ReportMetric(overBare, "front16/bare16")
		b.ReportMetric(ofOne, "front16/front1")
		if front1.most != 1 || front16.most != 1 || front1.errors+front16.errors > 0 {
			b.Errorf("a transaction through the front needed more than one try, or failed")
		}
	}
}

type measured struct {
	rate, tries float64
	most        int64 // tries of one transaction
	errors      int64
}

func measure(b *testing.B, e *emulatortest.Emulator, workers, rows int, newClient func(*emulatortest.DB, testing.TB, ...option.ClientOption) *spanner.Client, clients int) measured {
	b.Helper()
	db := e.Database(b,
		"CREATE TABLE Todo (Id INT64 NOT NULL) PRIMARY KEY (Id)",
		"CREATE TABLE Done (Id INT64 NOT NULL) PRIMARY KEY (Id)")
	all := make([]*spanner.Client, clients)
	for i := range all {
		all[i] = newClient(db, b)
		_, err := all[i].Single().ReadRow(b.Context(), "Todo", spanner.Key{0}, []string{"Id"})
		require.Equal(b, "NotFound", spanner.ErrCode(err).String()) // the session is made
	}
	fill := make([]*spanner.Mutation, rows)
	for i := range fill {
		fill[i] = spanner.Insert("Todo", []string{"Id"}, []any{i})
	}
	_, err := all[0].Apply(b.Context(), fill)
	require.NoError(b, err)

	var next, tries, failed atomic.Int64
	var mu sync.Mutex
	var most int64
	begin := time.Now()
	var group errgroup.Group
	for w := range workers {
		c := all[w%clients]
		group.Go(func() error {
			for id := next.Add(1) - 1; id < int64(rows); id = next.Add(1) - 1 {
				var mine int64
				_, err := c.ReadWriteTransaction(b.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
					mine++
					_, err := tx.Update(ctx, spanner.Statement{
						SQL:    "DELETE FROM Todo WHERE Id = @id ASSERT_ROWS_MODIFIED 1",
						Params: map[string]any{"id": id},
					})
					if err != nil {
						return err
					}
					return tx.BufferWrite([]*spanner.Mutation{spanner.Insert("Done", []string{"Id"}, []any{id})})
				})
				if err != nil {
					failed.Add(1)
				}
				tries.Add(mine)
				mu.Lock()
				most = max(most, mine)
				mu.Unlock()
			}
			return nil
		})
	}
	_ = group.Wait()
	took := time.Since(begin)
	if failed.Load() == 0 {
		var done int64
		row, err := db.Client(b).Single().Query(b.Context(), spanner.NewStatement("SELECT COUNT(*) FROM Done")).Next()
		require.NoError(b, err)
		require.NoError(b, row.Columns(&done))
		require.EqualValues(b, rows, done)
	}
	return measured{
		rate:   float64(rows) / took.Seconds(),
		tries:  float64(tries.Load()) / float64(rows),
		most:   most,
		errors: failed.Load(),
	}
}
