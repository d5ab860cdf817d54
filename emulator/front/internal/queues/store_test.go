package queues_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

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
	turns   atomic.Int64

	mu sync.Mutex // the turn
}

func newBench(t testing.TB, opts queues.Options, ddl ...string) *bench {
	addr := os.Getenv("SPANNER_EMULATOR_HOST")
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(128<<20)))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	ctx := context.Background()
	b := &bench{t: t, client: spannerpb.NewSpannerClient(conn), admin: databasepb.NewDatabaseAdminClient(conn), ops: longrunningpb.NewOperationsClient(conn)}
	instance := fmt.Sprintf("i%d", time.Now().UnixNano())
	_, err = instancepb.NewInstanceAdminClient(conn).CreateInstance(ctx, &instancepb.CreateInstanceRequest{
		Parent: "projects/p", InstanceId: instance,
		Instance: &instancepb.Instance{Config: "projects/p/instanceConfigs/emulator-config", DisplayName: instance, NodeCount: 1},
	})
	require.NoError(t, err)
	b.name = "projects/p/instances/" + instance + "/databases/test"
	b.queues, err = queues.New(b, opts)
	require.NoError(t, err)
	t.Cleanup(b.queues.Close)
	rewritten, err := b.queues.RewriteDDL(ctx, b.name, ddl)
	require.NoError(t, err)
	op, err := b.admin.CreateDatabase(ctx, &databasepb.CreateDatabaseRequest{Parent: "projects/p/instances/" + instance, CreateStatement: "CREATE DATABASE test", ExtraStatements: rewritten})
	b.wait(op, err)
	s, err := b.client.CreateSession(ctx, &spannerpb.CreateSessionRequest{Database: b.name})
	require.NoError(t, err)
	b.session = s.GetName()
	return b
}

func (b *bench) wait(op *longrunningpb.Operation, err error) {
	b.t.Helper()
	for err == nil && !op.GetDone() {
		op, err = b.ops.GetOperation(context.Background(), &longrunningpb.GetOperationRequest{Name: op.GetName()})
	}
	require.NoError(b.t, err)
	require.NoError(b.t, status.FromProto(op.GetError()).Err())
}

// ddl runs statements as the front would.
func (b *bench) ddl(statements ...string) {
	b.t.Helper()
	rewritten, err := b.queues.RewriteDDL(context.Background(), b.name, statements)
	require.NoError(b.t, err)
	op, err := b.admin.UpdateDatabaseDdl(context.Background(), &databasepb.UpdateDatabaseDdlRequest{Database: b.name, Statements: rewritten})
	b.wait(op, err)
	b.queues.DDLChanged(b.name)
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
	ctx := context.Background()
	kind, touched, err := b.queues.Statement(ctx, b.name, sql)
	require.NoError(b.t, err)
	require.Equal(b.t, queues.Pass, kind)
	b.mu.Lock()
	tx, err := b.client.BeginTransaction(ctx, &spannerpb.BeginTransactionRequest{Session: b.session, Options: readWrite})
	require.NoError(b.t, err)
	_, err = b.client.ExecuteSql(ctx, &spannerpb.ExecuteSqlRequest{Session: b.session, Sql: sql, Seqno: 1,
		Transaction: &spannerpb.TransactionSelector{Selector: &spannerpb.TransactionSelector_Id{Id: tx.GetId()}}})
	require.NoError(b.t, err)
	_, err = b.client.Commit(ctx, &spannerpb.CommitRequest{Session: b.session, Transaction: &spannerpb.CommitRequest_TransactionId{TransactionId: tx.GetId()}})
	b.mu.Unlock()
	require.NoError(b.t, err)
	b.queues.Committed(b.name, touched)
}

func (b *bench) InTurn(ctx context.Context, database string, f func(context.Context, queues.Querier) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turns.Add(1)
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
	req.Session, req.Transaction = q.session, q.tx
	return q.b.client.ExecuteSql(ctx, req)
}
