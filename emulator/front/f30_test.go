package front_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
)

var f30Tables = []string{
	"CREATE QUEUE Q (Id STRING(36) NOT NULL, Payload STRING(MAX) NOT NULL) PRIMARY KEY (Id)",
	"CREATE TABLE Receipt (Id STRING(36) NOT NULL) PRIMARY KEY (Id)",
}

// F30: a commit said OK and its mutations were gone. One transaction acknowledges m1 by DML, and sends m2 and writes a
// receipt by mutation, in an explicit begin on a multiplexed session, because the inline begin was aborted.
func TestF30CommitKeepsItsMutations(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, f30Tables...)
	s, addr := newFront(t, db.Emulator().BackendAddr(), front.Options{})
	f30(t, s, clientAt(t, addr, db.Name), db.Name)
}

// In twenty databases at once, whose transactions the emulator numbers alike.
func TestF30InTwentyDatabases(t *testing.T) {
	t.Parallel()
	dbs := make([]*emulatortest.DB, 20)
	for i := range dbs {
		dbs[i] = emulatortest.Database(t, f30Tables...)
	}
	s, addr := newFront(t, dbs[0].Emulator().BackendAddr(), front.Options{})
	clients := make([]*spanner.Client, len(dbs))
	for i, db := range dbs {
		clients[i] = clientAt(t, addr, db.Name)
	}
	for i, db := range dbs {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			f30(t, s, clients[i], db.Name)
		})
	}
}

func f30(t *testing.T, s *front.Server, c *spanner.Client, database string) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // no call hangs
	defer cancel()
	_, err := c.Apply(ctx, []*spanner.Mutation{spanner.Send("Q", spanner.Key{"m1"}, "first")})
	require.NoError(t, err)
	h := s.Faults().Add(fault.Rule{Method: "ExecuteSql", Database: database, SQL: "DELETE FROM Q", Nth: 1, Do: fault.Abort()})
	begun := s.Faults().Add(fault.Rule{Method: "BeginTransaction", Database: database, Tag: "f30", Do: fault.Delay(0)})

	_, err = c.ReadWriteTransactionWithOptions(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		if _, err := tx.Update(ctx, spanner.NewStatement("DELETE FROM Q WHERE Id = 'm1' ASSERT_ROWS_MODIFIED 1")); err != nil {
			return err
		}
		return tx.BufferWrite([]*spanner.Mutation{
			spanner.Send("Q", spanner.Key{"m2"}, "second"),
			spanner.Insert("Receipt", []string{"Id"}, []any{"m1"}),
		})
	}, spanner.TransactionOptions{TransactionTag: "f30"})
	require.NoError(t, err)
	require.Equal(t, 1, h.Applied())
	require.GreaterOrEqual(t, begun.Applied(), 1, "the transaction was not begun explicitly")
	require.Zero(t, rowsOf(t, c, "SELECT COUNT(*) FROM Q WHERE Id = 'm1'"))
	require.EqualValues(t, 1, rowsOf(t, c, "SELECT COUNT(*) FROM Q WHERE Id = 'm2'"))
	require.EqualValues(t, 1, rowsOf(t, c, "SELECT COUNT(*) FROM Receipt"))
}

// The same on a session that is not multiplexed, which Google's client no longer makes.
func TestF30OnARegularSession(t *testing.T) {
	t.Parallel()
	r, s := fronted(t, front.Options{})
	_, err := r.apply(r.ctx(), insert("m1"))
	require.NoError(t, err)
	s.Faults().Add(fault.Rule{Method: "ExecuteSql", Nth: 1, Do: fault.Abort()})
	const ack = "DELETE FROM T WHERE Id = 'm1' ASSERT_ROWS_MODIFIED 1"
	_, err = r.sql(r.ctx(), begins(readWrite), ack)
	requireCode(t, codes.Aborted, err)
	tx := r.begin(readWrite)
	_, err = r.sql(r.ctx(), byID(tx), ack)
	require.NoError(t, err)
	_, err = r.commit(r.ctx(), tx, insert("m2"), insert("receipt"))
	require.NoError(t, err)
	require.Equal(t, "0", r.count("Id = 'm1'"))
	require.Equal(t, "2", r.count("Id IN ('m2', 'receipt')"))
}
