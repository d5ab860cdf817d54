package front_test

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
)

const (
	shortIdle   = 300 * time.Millisecond
	shortClosed = 100 * time.Millisecond
)

// hold begins a transaction that has the turn.
func (r *raw) hold(id string) []byte {
	r.t.Helper()
	rs, err := r.sql(r.ctx(), begins(readWrite), insertSQL(id))
	require.NoError(r.t, err)
	return rs.GetMetadata().GetTransaction().GetId()
}

func TestIdleOwnerLosesItsTurnWhenSomebodyWaits(t *testing.T) {
	t.Parallel()
	r, s := fronted(t, front.Options{IdleBound: shortIdle})
	owner := r.hold("owner")
	begin := time.Now()
	_, err := r.apply(r.ctx(), insert("waiter"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(begin), shortIdle)
	_, err = r.sql(r.ctx(), byID(owner), "SELECT 1")
	requireCode(t, codes.Aborted, err)
	_, err = r.commit(r.ctx(), owner)
	requireCode(t, codes.Aborted, err)
	require.NoError(t, r.rollback(r.ctx(), owner))
	require.Equal(t, "0", r.count("Id = 'owner'"))
	require.Equal(t, front.Stats{}, s.Stats())
}

func TestIdleOwnerKeepsItsTurnWhenNobodyWaits(t *testing.T) {
	t.Parallel()
	r, s := fronted(t, front.Options{IdleBound: 10 * time.Millisecond})
	owner := r.hold("owner")
	require.Never(t, func() bool {
		r.count("TRUE") // reads do not wait
		return s.Stats().OpenTransactions == 0
	}, 200*time.Millisecond, 10*time.Millisecond, "it was ended although nobody waited")
	_, err := r.commit(r.ctx(), owner)
	require.NoError(t, err)
	require.Equal(t, "1", r.count("Id = 'owner'"))
}

// An owner at work keeps its turn, however long that takes.
func TestBusyOwnerKeepsItsTurn(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, table)
	_, innerAddr := newFront(t, db.Emulator().BackendAddr(), front.Options{})
	_, addr := newFront(t, innerAddr, front.Options{IdleBound: 20 * time.Millisecond})
	r := newRaw(t, addr, db.Name)
	// The inner front keeps the outer one's statement waiting, because another client of it has the turn there.
	other := newRaw(t, innerAddr, db.Name)
	held := other.hold("held")
	statement := make(chan error, 1)
	var tx []byte
	go func() {
		rs, err := r.sql(r.ctx(), begins(readWrite), insertSQL("slow"))
		tx = rs.GetMetadata().GetTransaction().GetId()
		statement <- err
	}()
	waiter := make(chan error, 1)
	go func() {
		_, err := r.apply(r.ctx(), insert("waiter"))
		waiter <- err
	}()
	require.Never(t, func() bool { return len(waiter) > 0 }, 200*time.Millisecond, 10*time.Millisecond, "the turn of an owner at work was taken")
	require.NoError(t, other.rollback(other.ctx(), held))
	require.NoError(t, <-statement)
	_, err := r.commit(r.ctx(), tx)
	require.NoError(t, err)
	require.NoError(t, <-waiter)
}

func TestWaiterThatIsCancelledLeaves(t *testing.T) {
	t.Parallel()
	r, s := fronted(t, front.Options{})
	owner := r.hold("owner")
	for name, wait := range map[string]func(ctx context.Context) error{
		"inline begin": func(ctx context.Context) error {
			_, err := r.sql(ctx, begins(readWrite), insertSQL("waiter"))
			return err
		},
		"streaming inline begin": func(ctx context.Context) error {
			_, err := all(r.ExecuteStreamingSql(ctx, &spannerpb.ExecuteSqlRequest{Session: r.session, Transaction: begins(readWrite), Sql: insertSQL("waiter"), Seqno: 1}))
			return err
		},
		"single-use commit": func(ctx context.Context) error {
			_, err := r.apply(ctx, insert("waiter"))
			return err
		},
		"commit": func(ctx context.Context) error {
			_, err := r.commit(ctx, r.begin(readWrite), insert("waiter"))
			return err
		},
		"batch write": func(ctx context.Context) error {
			_, err := all(r.BatchWrite(ctx, &spannerpb.BatchWriteRequest{Session: r.session, MutationGroups: []*spannerpb.BatchWriteRequest_MutationGroup{{Mutations: []*spannerpb.Mutation{insert("waiter")}}}}))
			return err
		},
		"partitioned DML": func(ctx context.Context) error {
			_, err := r.sql(ctx, byID(r.begin(partDML)), "DELETE FROM T WHERE TRUE")
			return err
		},
		"schema change": func(ctx context.Context) error {
			_, err := r.admin().UpdateDatabaseDdl(ctx, &databasepb.UpdateDatabaseDdlRequest{Database: r.database, Statements: []string{"DROP TABLE T"}})
			return err
		},
	} {
		ctx, cancel := context.WithCancel(r.ctx())
		waiting := make(chan error, 1)
		go func() { waiting <- wait(ctx) }()
		eventually(t, name+" does not wait", func() bool { return s.Stats().Waiting == 1 })
		cancel()
		requireCode(t, codes.Canceled, <-waiting)
		eventually(t, name+" still waits", func() bool { return s.Stats().Waiting == 0 })
	}
	_, err := r.commit(r.ctx(), owner)
	require.NoError(t, err)
	r.requireFree()
	require.Equal(t, "0", r.count("Id = 'waiter'"))
}

// A client that vanishes takes its transactions with it, also when nobody waits, and in whatever state they are.
func TestClosedConnection(t *testing.T) {
	t.Parallel()
	r, s := fronted(t, front.Options{ClosedBound: shortClosed})
	leave := map[string]func(c *raw){
		"begun":  func(c *raw) { c.begin(readWrite) },
		"active": func(c *raw) { c.hold("lost") },
		"failed statement": func(c *raw) {
			tx := c.hold("lost")
			_, err := c.sql(c.ctx(), byID(tx), missSQL)
			requireCode(t, codes.OutOfRange, err)
		},
	}
	for name, work := range leave {
		c := newRaw(t, r.conn.Target()[len("passthrough:///"):], r.database)
		work(c)
		require.Equal(t, 1, s.Stats().OpenTransactions, name)
		require.NoError(t, c.conn.Close())
		eventually(t, name+": the transaction lives on", func() bool { return s.Stats().OpenTransactions == 0 })
		r.requireFree()
		require.Equal(t, "0", r.count("Id = 'lost'"))
	}
}

// Clients use several connections: a transaction lives as long as the one that it was last heard of on.
func TestTransactionMovesToAnotherConnection(t *testing.T) {
	t.Parallel()
	r, s := fronted(t, front.Options{ClosedBound: shortClosed})
	addr := r.conn.Target()[len("passthrough:///"):]
	first := newRaw(t, addr, r.database)
	tx := first.hold("moved")
	second := newRaw(t, addr, r.database).on(first.session)
	_, err := second.sql(second.ctx(), byID(tx), "SELECT 1")
	require.NoError(t, err)
	require.NoError(t, first.conn.Close())
	require.Never(t, func() bool { return s.Stats().OpenTransactions == 0 }, 4*shortClosed, shortClosed/10, "it was ended with the first connection")
	_, err = second.commit(second.ctx(), tx)
	require.NoError(t, err)
	require.Equal(t, "1", r.count("Id = 'moved'"))
}

// A transaction that waits while its client vanishes leaves the line.
func TestWaiterOnAClosedConnection(t *testing.T) {
	t.Parallel()
	r, s := fronted(t, front.Options{ClosedBound: shortClosed})
	owner := r.hold("owner")
	c := newRaw(t, r.conn.Target()[len("passthrough:///"):], r.database)
	waiting := make(chan error, 1)
	go func() {
		_, err := c.sql(c.ctx(), begins(readWrite), insertSQL("lost"))
		waiting <- err
	}()
	eventually(t, "it does not wait", func() bool { return s.Stats().Waiting == 1 })
	require.NoError(t, c.conn.Close())
	require.Error(t, <-waiting)
	eventually(t, "it still waits", func() bool { return s.Stats() == front.Stats{OpenTransactions: 1} })
	_, err := r.commit(r.ctx(), owner)
	require.NoError(t, err)
}

// A schema change waits for open transactions, where the emulator refuses it.
func TestSchemaChangeTakesItsTurn(t *testing.T) {
	t.Parallel()
	r, s := fronted(t, front.Options{})
	owner := r.hold("owner")
	changed := make(chan error, 1)
	go func() {
		op, err := r.admin().UpdateDatabaseDdl(r.ctx(), &databasepb.UpdateDatabaseDdlRequest{Database: r.database, Statements: []string{"CREATE TABLE U (Id INT64) PRIMARY KEY (Id)"}})
		if err == nil && !op.GetDone() {
			t.Errorf("the operation is not done: %v", op)
		}
		changed <- err
	}()
	eventually(t, "the schema change does not wait", func() bool { return s.Stats().Waiting == 1 })
	_, err := r.commit(r.ctx(), owner)
	require.NoError(t, err)
	require.NoError(t, <-changed)
	ddl, err := r.admin().GetDatabaseDdl(r.ctx(), &databasepb.GetDatabaseDdlRequest{Database: r.database})
	require.NoError(t, err)
	require.Len(t, ddl.GetStatements(), 2)
}
