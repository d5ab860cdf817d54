package front_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
)

// footprint is what this process has: the front and its client are in it, the emulator is not.
type footprint struct {
	goroutines int
	heap       uint64
}

func (f footprint) String() string {
	return fmt.Sprintf("%d goroutines, heap %.1f MiB", f.goroutines, float64(f.heap)/(1<<20))
}

func measure() footprint {
	runtime.GC()
	runtime.GC() // what finalizers let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return footprint{runtime.NumGoroutine(), m.HeapAlloc}
}

// requireSettled waits until the process is as small as before, within bounds.
func requireSettled(t *testing.T, before footprint, heap uint64) {
	t.Helper()
	var after footprint
	ok := false
	for deadline := time.Now().Add(patience); !ok && time.Now().Before(deadline); {
		after = measure()
		ok = after.goroutines <= before.goroutines+10 && after.heap <= before.heap+heap
		if !ok {
			runtime.Gosched()
		}
	}
	t.Logf("before: %v; after: %v", before, after)
	require.True(t, ok, "before: %v; after: %v", before, after)
}

// These tests are not parallel: they count what the whole process has.

func TestManyTransactionsLeaveNothing(t *testing.T) {
	n := 1000
	if longRun() {
		n = 10_000
	}
	db := emulatortest.Database(t, table, taskQueue)
	s, addr := newFront(t, db.Emulator().BackendAddr(), front.Options{ClosedBound: shortClosed})
	r := newRaw(t, addr, db.Name)
	one := func(ctx context.Context, i int) error {
		id := fmt.Sprint(i)
		switch i % 6 {
		case 0: // begun, and nothing more
			_, err := r.BeginTransaction(ctx, &spannerpb.BeginTransactionRequest{Session: r.session, Options: readWrite})
			return err
		case 1:
			rs, err := r.sql(ctx, begins(readWrite), insertSQL(id))
			if err == nil {
				_, err = r.commit(ctx, rs.GetMetadata().GetTransaction().GetId())
			}
			return err
		case 2:
			rs, err := r.sql(ctx, begins(readWrite), insertSQL(id))
			if err == nil {
				err = r.rollback(ctx, rs.GetMetadata().GetTransaction().GetId())
			}
			return err
		case 3: // a statement that fails, inline
			if _, err := r.sql(ctx, begins(readWrite), missSQL); status.Code(err) != codes.OutOfRange {
				return fmt.Errorf("%w, want OUT_OF_RANGE", err)
			}
			return nil
		case 4:
			_, err := r.apply(ctx, upsert(fmt.Sprint(i%100)))
			return err
		}
		tx, err := r.BeginTransaction(ctx, &spannerpb.BeginTransactionRequest{Session: r.session, Options: strong})
		if err == nil {
			_, err = r.sql(ctx, byID(tx.GetId()), "SELECT 1")
		}
		return err
	}
	run := func(first, n int) {
		var group errgroup.Group
		group.SetLimit(16)
		for i := range n {
			group.Go(func() error { return one(context.Background(), first+i) })
		}
		require.NoError(t, group.Wait())
	}
	run(0, 96) // what is made once
	require.Equal(t, 96/6, s.Stats().OpenTransactions)
	_, err := r.DeleteSession(r.ctx(), &spannerpb.DeleteSessionRequest{Name: r.session})
	require.NoError(t, err)
	r.session = r.newSession(nil)
	before := measure()
	run(1000, n)
	_, err = r.DeleteSession(r.ctx(), &spannerpb.DeleteSessionRequest{Name: r.session})
	require.NoError(t, err)
	require.Equal(t, front.Stats{}, s.Stats())
	// A transaction that has ended is remembered in some hundred bytes.
	requireSettled(t, before, 4<<20+uint64(n)*1000)
}

// A thousand receivers may be open at once, with equal arguments, and no more.
func TestAThousandReceivers(t *testing.T) {
	db := emulatortest.Database(t, taskQueue)
	_, addr := newFront(t, db.Emulator().BackendAddr(), front.Options{})
	c := clientAt(t, addr, db.Name)
	r := newRaw(t, addr, db.Name)
	const sql = "SELECT Id FROM RECEIVE_Tasks(max_duration => '10m', max_batch_size => 1)"
	receive := func(ctx context.Context, sql string) (spannerpb.Spanner_ExecuteStreamingSqlClient, error) {
		stream, err := r.ExecuteStreamingSql(ctx, &spannerpb.ExecuteSqlRequest{Session: r.session, Sql: sql})
		if err == nil {
			_, err = stream.Recv() // the metadata
		}
		return stream, err
	}
	warm, stop := context.WithCancel(context.Background())
	_, err := receive(warm, sql)
	require.NoError(t, err)
	stop()
	before := measure()

	const most = 1000
	ctx, cancel := context.WithCancel(context.Background())
	got := make(chan string, most)
	var open, all errgroup.Group
	open.SetLimit(32)
	for range most {
		open.Go(func() error {
			stream, err := receive(ctx, sql)
			if err != nil {
				return err
			}
			all.Go(func() error {
				for {
					part, err := stream.Recv()
					if err != nil {
						if status.Code(err) == codes.Canceled {
							return nil
						}
						return err
					}
					for _, v := range part.GetValues() {
						got <- v.GetStringValue()
					}
				}
			})
			return nil
		})
	}
	require.NoError(t, open.Wait())
	t.Logf("with %d receivers: %v", most, measure())
	_, err = receive(ctx, sql)
	requireCode(t, codes.ResourceExhausted, err)
	require.False(t, hasRetryInfo(err), "Google's client would try again for ever, unseen")
	other, err := receive(ctx, "SELECT Id FROM RECEIVE_Tasks(max_duration => '10m', max_batch_size => 2) WHERE FALSE")
	require.NoError(t, err, "other arguments are counted apart")

	// They work: each message comes to one of them.
	seen := map[string]bool{}
	for i := range 100 {
		apply(t, c, spanner.Send("Tasks", spanner.Key{i}, "x"))
	}
	for range 100 {
		select {
		case id := <-got:
			require.False(t, seen[id], id)
			seen[id] = true
		case <-time.After(patience):
			require.FailNow(t, "messages are missing", "%d came", len(seen))
		}
	}
	cancel()
	_, err = other.Recv()
	require.Error(t, err)
	require.NoError(t, all.Wait())
	requireSettled(t, before, 16<<20)
	again, stopAgain := context.WithCancel(context.Background())
	defer stopAgain()
	eventually(t, "the places are still taken", func() bool {
		_, err := receive(again, sql)
		return err == nil
	})
}
