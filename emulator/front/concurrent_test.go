package front_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
)

func rowsOf(t testing.TB, c *spanner.Client, sql string) int64 {
	t.Helper()
	var n int64
	require.NoError(t, c.Single().Query(context.Background(), spanner.NewStatement(sql)).Do(func(r *spanner.Row) error { return r.Column(0, &n) }))
	return n
}

// One client has one session, on which the bare emulator can keep one transaction.
func TestSixteenTransactionsAtOnceOnOneClient(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, table)
	c := db.Client(t)
	var running, together atomic.Int64
	var group errgroup.Group
	for worker := range 16 {
		group.Go(func() error {
			for i := range 10 {
				tries := 0
				id := fmt.Sprintf("%d-%d", worker, i)
				_, err := c.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
					tries++
					if n := running.Add(1); n > together.Load() {
						together.Store(n)
					}
					defer running.Add(-1)
					if _, err := tx.Update(ctx, spanner.NewStatement(insertSQL(id))); err != nil {
						return err
					}
					if _, err := tx.ReadRow(ctx, "T", spanner.Key{id}, []string{"N"}); err != nil {
						return err
					}
					return tx.BufferWrite([]*spanner.Mutation{spanner.Insert("T", []string{"Id", "N"}, []any{"mutation " + id, 1})})
				})
				if err != nil {
					return err
				}
				if tries != 1 {
					return fmt.Errorf("transaction %s ran %d times", id, tries)
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	require.EqualValues(t, 320, rowsOf(t, c, "SELECT COUNT(*) FROM T"))
	require.Greater(t, together.Load(), int64(4), "they did not run at once: this shows nothing")
}

// The emulator's session keeps 32.
func TestManyReadOnlyTransactionsOnOneClient(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, table)
	c := db.Client(t)
	_, err := c.Apply(t.Context(), []*spanner.Mutation{spanner.Insert("T", []string{"Id"}, []any{"before"})})
	require.NoError(t, err)
	open := make([]*spanner.ReadOnlyTransaction, 300)
	for i := range open {
		open[i] = c.ReadOnlyTransaction()
		defer open[i].Close()
		if i%2 == 0 { // half begin with a read, the others with a query
			_, err := open[i].ReadRow(t.Context(), "T", spanner.Key{"before"}, []string{"N"})
			require.NoError(t, err)
			continue
		}
		require.EqualValues(t, 1, countIn(t, open[i]))
	}
	_, err = c.Apply(t.Context(), []*spanner.Mutation{spanner.Insert("T", []string{"Id"}, []any{"after"})})
	require.NoError(t, err)
	for _, tx := range open {
		require.EqualValues(t, 1, countIn(t, tx), "a read-only transaction sees what was committed after it began")
	}
	first, err := open[0].Timestamp()
	require.NoError(t, err)
	require.False(t, first.IsZero())
	require.EqualValues(t, 2, rowsOf(t, c, "SELECT COUNT(*) FROM T"))
}

func countIn(t testing.TB, tx *spanner.ReadOnlyTransaction) (n int64) {
	t.Helper()
	require.NoError(t, tx.Query(t.Context(), spanner.NewStatement("SELECT COUNT(*) FROM T")).Do(func(r *spanner.Row) error { return r.Column(0, &n) }))
	return n
}

func TestBatchReadOnlyTransaction(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, table)
	c := db.Client(t)
	for i := range 20 {
		_, err := c.Apply(t.Context(), []*spanner.Mutation{spanner.Insert("T", []string{"Id"}, []any{fmt.Sprint(i)})})
		require.NoError(t, err)
	}
	tx, err := c.BatchReadOnlyTransaction(t.Context(), spanner.StrongRead())
	require.NoError(t, err)
	defer tx.Close()
	_, err = c.Apply(t.Context(), []*spanner.Mutation{spanner.Insert("T", []string{"Id"}, []any{"later"})})
	require.NoError(t, err)
	for range 3 { // several sets of partitions of one transaction, read in turn
		byQuery, err := tx.PartitionQuery(t.Context(), spanner.NewStatement("SELECT Id FROM T"), spanner.PartitionOptions{})
		require.NoError(t, err)
		byRead, err := tx.PartitionRead(t.Context(), "T", spanner.AllKeys(), []string{"Id"}, spanner.PartitionOptions{})
		require.NoError(t, err)
		for _, parts := range [][]*spanner.Partition{byQuery, byRead} {
			n := 0
			for _, p := range parts {
				require.NoError(t, tx.Execute(t.Context(), p).Do(func(*spanner.Row) error { n++; return nil }))
			}
			require.Equal(t, 20, n)
		}
	}
}

func TestBatchWrite(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, table)
	c := db.Client(t)
	add := func(id string) *spanner.Mutation { return spanner.Insert("T", []string{"Id", "N"}, []any{id, 1}) }
	groups := []*spanner.MutationGroup{
		{Mutations: []*spanner.Mutation{add("a"), add("b")}},
		{Mutations: []*spanner.Mutation{add("c"), add("a")}}, // a exists: all of the group fails
		{Mutations: []*spanner.Mutation{add("d")}},
	}
	answers := map[int32]codes.Code{}
	require.NoError(t, c.BatchWrite(t.Context(), groups).Do(func(r *spannerpb.BatchWriteResponse) error {
		for _, i := range r.GetIndexes() {
			answers[i] = codes.Code(r.GetStatus().GetCode())
		}
		if (r.GetStatus().GetCode() == 0) != (r.GetCommitTimestamp() != nil) {
			t.Errorf("group %v: %v and time %v", r.GetIndexes(), r.GetStatus(), r.GetCommitTimestamp())
		}
		require.NotNil(t, r.GetStatus(), "clients read the code of an OK, too")
		return nil
	}))
	require.Equal(t, map[int32]codes.Code{0: codes.OK, 1: codes.AlreadyExists, 2: codes.OK}, answers)
	require.EqualValues(t, 3, rowsOf(t, c, "SELECT COUNT(*) FROM T"))

	r := newRaw(t, db.Endpoint(), db.Name)
	_, err := all(r.BatchWrite(r.ctx(), &spannerpb.BatchWriteRequest{Session: r.session}))
	requireCode(t, codes.InvalidArgument, err)
}

func TestPartitionedUpdate(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, table)
	c := db.Client(t)
	_, err := c.Apply(t.Context(), []*spanner.Mutation{spanner.Insert("T", []string{"Id", "N"}, []any{"a", 1})})
	require.NoError(t, err)
	var group errgroup.Group
	for range 8 {
		group.Go(func() error {
			_, err := c.PartitionedUpdate(t.Context(), spanner.NewStatement("UPDATE T SET N = N + 1 WHERE TRUE"))
			return err
		})
	}
	require.NoError(t, group.Wait())
	require.EqualValues(t, 9, rowsOf(t, c, "SELECT N FROM T"))
}

// A partitioned DML statement that fails half way holds nothing afterwards.
func TestPartitionedDMLThatFails(t *testing.T) {
	t.Parallel()
	r, s := fronted(t, front.Options{})
	_, err := r.apply(r.ctx(), insert("a"), insert("b"))
	require.NoError(t, err)
	tx := r.begin(partDML)
	for range 5 { // the emulator throws dice: once may be luck
		_, err = r.sql(r.ctx(), byID(tx), "UPDATE T SET N = DIV(N, 0) WHERE TRUE")
		requireCode(t, codes.OutOfRange, err)
		r.requireFree()
	}
	_, err = r.sql(r.ctx(), begins(partDML), "UPDATE T SET N = DIV(N, 0) WHERE TRUE")
	requireCode(t, codes.OutOfRange, err)
	r.requireFree()
	require.Equal(t, 1, s.Stats().OpenTransactions, "the one begun inline is forgotten")
}

// A strong read sees what was committed before it, and does not wait for a transaction that is open.
func TestReadsDoNotWait(t *testing.T) {
	t.Parallel()
	r, s := fronted(t, front.Options{})
	_, err := r.apply(r.ctx(), insert("a"))
	require.NoError(t, err)
	rs, err := r.sql(r.ctx(), begins(readWrite), insertSQL("b"))
	require.NoError(t, err)
	require.Equal(t, "1", r.count("TRUE"))
	ro := r.begin(strong)
	_, err = r.commit(r.ctx(), rs.GetMetadata().GetTransaction().GetId())
	require.NoError(t, err)
	require.Equal(t, "2", r.count("TRUE"))
	rs, err = r.sql(r.ctx(), byID(ro), "SELECT Id FROM T")
	require.NoError(t, err)
	require.Len(t, rs.GetRows(), 1)
	require.Zero(t, s.Stats().OpenTransactions)
}

// Databases do not wait for each other.
func TestDatabasesDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	a, b := emulatortest.Database(t, table), emulatortest.Database(t, table)
	ra, rb := newRaw(t, a.Endpoint(), a.Name), newRaw(t, b.Endpoint(), b.Name)
	_, err := ra.sql(ra.ctx(), begins(readWrite), insertSQL("a"))
	require.NoError(t, err)
	rb.requireFree()
}
