package queues_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front/internal/queues"
)

// bench is a database of the bare emulator with queues over it, and the smallest front that can be: turns are a mutex.
type bench struct {
	t       testing.TB
	client  spannerpb.SpannerClient
	admin   databasepb.DatabaseAdminClient
	ops     longrunningpb.OperationsClient
	name    string
	session string
	queues  *queues.Queues
	queries atomic.Int64 // the statements that the queues had the emulator run

	mu sync.Mutex // the turn
}

// newBench starts an emulator and creates a database with the statements ddl.
func newBench(t testing.TB, opts queues.Options, ddl ...string) *bench {
	t.Helper()
	e := emulatortest.New(t, emulator.Options{NoFront: true})
	conn, err := grpc.NewClient("passthrough:///"+e.BackendAddr(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	b := &bench{
		t:      t,
		client: spannerpb.NewSpannerClient(conn),
		admin:  databasepb.NewDatabaseAdminClient(conn),
		ops:    longrunningpb.NewOperationsClient(conn),
		name:   "projects/p/instances/test/databases/test",
	}
	b.queues = b.newQueues(opts)
	rewritten, err := b.queues.RewriteDDL(t.Context(), b.name, ddl)
	require.NoError(t, err)
	require.NoError(t, e.CreateDatabase(t.Context(), b.name, rewritten...))
	s, err := b.client.CreateSession(t.Context(), &spannerpb.CreateSessionRequest{Database: b.name})
	require.NoError(t, err)
	b.session = s.GetName()
	return b
}

// maxAnswer is small, so that tests can exceed it.
const maxAnswer = 1 << 20

// newQueues makes queues over the database, as a front that has just started has them.
func (b *bench) newQueues(opts queues.Options) *queues.Queues {
	b.t.Helper()
	q, err := queues.New(b, opts)
	require.NoError(b.t, err)
	b.t.Cleanup(q.Close)
	return q
}

// ddl runs statements as the front would.
func (b *bench) ddl(statements ...string) {
	b.t.Helper()
	require.NoError(b.t, b.tryDDL(statements...))
}

func (b *bench) tryDDL(statements ...string) error {
	rewritten, err := b.queues.RewriteDDL(context.Background(), b.name, statements)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.queues.DDLChanged(b.name)
	op, err := b.admin.UpdateDatabaseDdl(context.Background(), &databasepb.UpdateDatabaseDdlRequest{Database: b.name, Statements: rewritten})
	for err == nil && !op.GetDone() {
		op, err = b.ops.GetOperation(context.Background(), &longrunningpb.GetOperationRequest{Name: op.GetName()})
	}
	if err != nil {
		return err
	}
	return status.FromProto(op.GetError()).Err()
}

// commit applies mutations as the front would.
func (b *bench) commit(ms ...*spannerpb.Mutation) error {
	out, touched, err := b.queues.RewriteMutations(context.Background(), b.name, ms)
	if err != nil {
		return err
	}
	b.mu.Lock()
	_, err = b.client.Commit(context.Background(), &spannerpb.CommitRequest{
		Session:     b.session,
		Transaction: &spannerpb.CommitRequest_SingleUseTransaction{SingleUseTransaction: readWrite},
		Mutations:   out,
	})
	b.mu.Unlock()
	if err == nil {
		b.queues.Committed(b.name, touched)
	}
	return err
}

var readWrite = &spannerpb.TransactionOptions{Mode: &spannerpb.TransactionOptions_ReadWrite_{ReadWrite: &spannerpb.TransactionOptions_ReadWrite{}}}

// dml runs one statement in a transaction of its own, as the front would.
func (b *bench) dml(sql string) {
	b.t.Helper()
	kind, touched, err := b.queues.Statement(context.Background(), b.name, sql)
	require.NoError(b.t, err)
	require.Equal(b.t, queues.Pass, kind)
	tx := b.begin()
	b.run(tx, sql)
	b.end(tx, touched)
}

// begin takes the turn and begins a transaction.
func (b *bench) begin() (id []byte) {
	b.t.Helper()
	b.mu.Lock()
	tx, err := b.client.BeginTransaction(context.Background(), &spannerpb.BeginTransactionRequest{Session: b.session, Options: readWrite})
	require.NoError(b.t, err)
	return tx.GetId()
}

func (b *bench) run(tx []byte, sql string) {
	b.t.Helper()
	_, err := b.client.ExecuteSql(context.Background(), &spannerpb.ExecuteSqlRequest{Session: b.session, Sql: sql, Seqno: 1,
		Transaction: &spannerpb.TransactionSelector{Selector: &spannerpb.TransactionSelector_Id{Id: tx}}})
	require.NoError(b.t, err)
}

// end commits, gives the turn back, and tells.
func (b *bench) end(tx []byte, touched []string) {
	b.t.Helper()
	_, err := b.client.Commit(context.Background(), &spannerpb.CommitRequest{Session: b.session, Transaction: &spannerpb.CommitRequest_TransactionId{TransactionId: tx}})
	b.mu.Unlock()
	require.NoError(b.t, err)
	b.queues.Committed(b.name, touched)
}

func (b *bench) InTurn(ctx context.Context, database string, f func(context.Context, queues.Querier) error) error {
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.mu.Unlock()
	s, err := b.client.CreateSession(ctx, &spannerpb.CreateSessionRequest{Database: database})
	if err != nil {
		return err
	}
	tx, err := b.client.BeginTransaction(ctx, &spannerpb.BeginTransactionRequest{Session: s.GetName(), Options: readWrite})
	if err != nil {
		return err
	}
	defer b.client.Rollback(context.WithoutCancel(ctx), &spannerpb.RollbackRequest{Session: s.GetName(), TransactionId: tx.GetId()})
	return f(ctx, querier{b, s.GetName(), &spannerpb.TransactionSelector{Selector: &spannerpb.TransactionSelector_Id{Id: tx.GetId()}}})
}

// lock waits for the turn as long as ctx allows.
func (b *bench) lock(ctx context.Context) error {
	for !b.mu.TryLock() {
		select {
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		case <-time.After(100 * time.Microsecond):
		}
	}
	return nil
}

func (b *bench) Outside(ctx context.Context, database string, f func(context.Context, queues.Querier) error) error {
	s, err := b.client.CreateSession(ctx, &spannerpb.CreateSessionRequest{Database: database})
	if err != nil {
		return err
	}
	return f(ctx, querier{b, s.GetName(), nil})
}

type querier struct {
	b       *bench
	session string
	tx      *spannerpb.TransactionSelector
}

func (q querier) Read(ctx context.Context, req *spannerpb.ReadRequest) (*spannerpb.ResultSet, error) {
	req.Session, req.Transaction = q.session, q.tx
	return q.b.client.Read(ctx, req)
}

func (q querier) ExecuteSql(ctx context.Context, req *spannerpb.ExecuteSqlRequest) (*spannerpb.ResultSet, error) {
	q.b.queries.Add(1)
	req.Session, req.Transaction = q.session, q.tx
	return q.b.client.ExecuteSql(ctx, req)
}

func (b *bench) KnowsQueues(context.Context) (bool, error) { return false, nil }

func (b *bench) Instance(_ context.Context, database string) (queues.Instance, error) {
	return queues.Instance{ProcessingUnits: 1000, Databases: []string{database}}, nil
}
