package front_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
)

const table = "CREATE TABLE T (Id STRING(36) NOT NULL, N INT64) PRIMARY KEY (Id)"

// patience bounds what should take milliseconds.
const patience = 60 * time.Second

// raw is a client that sends what it is told and nothing else.
type raw struct {
	spannerpb.SpannerClient
	t        testing.TB
	conn     *grpc.ClientConn
	database string
	session  string
	seqno    *atomic.Int64
}

func newRaw(t testing.TB, addr, database string, opts ...grpc.DialOption) *raw {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	r := &raw{SpannerClient: spannerpb.NewSpannerClient(conn), t: t, conn: conn, database: database, seqno: new(atomic.Int64)}
	r.session = r.newSession(&spannerpb.Session{})
	return r
}

func (r *raw) newSession(s *spannerpb.Session) string {
	r.t.Helper()
	made, err := r.CreateSession(r.ctx(), &spannerpb.CreateSessionRequest{Database: r.database, Session: s})
	require.NoError(r.t, err)
	return made.GetName()
}

// on is the same client with another session.
func (r *raw) on(session string) *raw {
	c := *r
	c.session = session
	return &c
}

func (r *raw) admin() databasepb.DatabaseAdminClient {
	return databasepb.NewDatabaseAdminClient(r.conn)
}

func (r *raw) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	r.t.Cleanup(cancel)
	return ctx
}

func (r *raw) begin(o *spannerpb.TransactionOptions) []byte {
	r.t.Helper()
	tx, err := r.BeginTransaction(r.ctx(), &spannerpb.BeginTransactionRequest{Session: r.session, Options: o})
	require.NoError(r.t, err)
	return tx.GetId()
}

func (r *raw) sql(ctx context.Context, sel *spannerpb.TransactionSelector, sql string) (*spannerpb.ResultSet, error) {
	return r.ExecuteSql(ctx, &spannerpb.ExecuteSqlRequest{Session: r.session, Transaction: sel, Sql: sql, Seqno: r.seqno.Add(1)})
}

func (r *raw) commit(ctx context.Context, tx []byte, ms ...*spannerpb.Mutation) (*spannerpb.CommitResponse, error) {
	return r.Commit(ctx, &spannerpb.CommitRequest{
		Session: r.session, Transaction: &spannerpb.CommitRequest_TransactionId{TransactionId: tx}, Mutations: ms,
	})
}

func (r *raw) apply(ctx context.Context, ms ...*spannerpb.Mutation) (*spannerpb.CommitResponse, error) {
	return r.Commit(ctx, &spannerpb.CommitRequest{
		Session: r.session, Transaction: &spannerpb.CommitRequest_SingleUseTransaction{SingleUseTransaction: readWrite}, Mutations: ms,
	})
}

func (r *raw) rollback(ctx context.Context, tx []byte) error {
	_, err := r.Rollback(ctx, &spannerpb.RollbackRequest{Session: r.session, TransactionId: tx})
	return err
}

func (r *raw) batch(ctx context.Context, sel *spannerpb.TransactionSelector, statements ...string) (*spannerpb.ExecuteBatchDmlResponse, error) {
	req := &spannerpb.ExecuteBatchDmlRequest{Session: r.session, Transaction: sel, Seqno: r.seqno.Add(1)}
	for _, s := range statements {
		req.Statements = append(req.Statements, &spannerpb.ExecuteBatchDmlRequest_Statement{Sql: s})
	}
	return r.ExecuteBatchDml(ctx, req)
}

// count is the number of rows of T that the database has now.
func (r *raw) count(where string) string {
	r.t.Helper()
	rs, err := r.sql(r.ctx(), nil, "SELECT COUNT(*) FROM T WHERE "+where)
	require.NoError(r.t, err)
	return rs.GetRows()[0].GetValues()[0].GetStringValue()
}

// requireFree shows that nothing is left that holds the database: a write lands at once.
func (r *raw) requireFree() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx(), 5*time.Second) // less than any idle bound, for a machine under load
	defer cancel()
	_, err := r.apply(ctx, upsert("free"))
	require.NoError(r.t, err, "the database is held")
}

var (
	readWrite = &spannerpb.TransactionOptions{Mode: &spannerpb.TransactionOptions_ReadWrite_{ReadWrite: new(spannerpb.TransactionOptions_ReadWrite)}}
	partDML   = &spannerpb.TransactionOptions{Mode: &spannerpb.TransactionOptions_PartitionedDml_{PartitionedDml: new(spannerpb.TransactionOptions_PartitionedDml)}}
	strong    = readOnly(&spannerpb.TransactionOptions_ReadOnly{ReturnReadTimestamp: true, TimestampBound: &spannerpb.TransactionOptions_ReadOnly_Strong{Strong: true}})
)

func readOnly(ro *spannerpb.TransactionOptions_ReadOnly) *spannerpb.TransactionOptions {
	return &spannerpb.TransactionOptions{Mode: &spannerpb.TransactionOptions_ReadOnly_{ReadOnly: ro}}
}

func byID(id []byte) *spannerpb.TransactionSelector {
	return &spannerpb.TransactionSelector{Selector: &spannerpb.TransactionSelector_Id{Id: id}}
}

func begins(o *spannerpb.TransactionOptions) *spannerpb.TransactionSelector {
	return &spannerpb.TransactionSelector{Selector: &spannerpb.TransactionSelector_Begin{Begin: o}}
}

func once(o *spannerpb.TransactionOptions) *spannerpb.TransactionSelector {
	return &spannerpb.TransactionSelector{Selector: &spannerpb.TransactionSelector_SingleUse{SingleUse: o}}
}

func row(id string) *spannerpb.Mutation_Write {
	return &spannerpb.Mutation_Write{Table: "T", Columns: []string{"Id", "N"}, Values: []*structpb.ListValue{
		{Values: []*structpb.Value{structpb.NewStringValue(id), structpb.NewStringValue("1")}},
	}}
}

func insert(id string) *spannerpb.Mutation {
	return &spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: row(id)}}
}

func upsert(id string) *spannerpb.Mutation {
	return &spannerpb.Mutation{Operation: &spannerpb.Mutation_InsertOrUpdate{InsertOrUpdate: row(id)}}
}

func insertSQL(id string) string { return "INSERT INTO T (Id, N) VALUES ('" + id + "', 1)" }

const missSQL = "DELETE FROM T WHERE Id = 'nobody' ASSERT_ROWS_MODIFIED 1"

// all reads a stream to its end.
func all[T any](stream grpc.ServerStreamingClient[T], err error) ([]*T, error) {
	if err != nil {
		return nil, err
	}
	var got []*T
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		got = append(got, m)
	}
}

func requireCode(t testing.TB, want codes.Code, err error) {
	t.Helper()
	require.Equal(t, want, status.Code(err), "%v", err)
	if want == codes.Aborted {
		require.True(t, hasRetryInfo(err), "ABORTED without RetryInfo: %v", err)
	}
}

func hasRetryInfo(err error) bool {
	for _, d := range status.Convert(err).Details() {
		if _, ok := d.(*errdetails.RetryInfo); ok {
			return true
		}
	}
	return false
}

// newFront is a front of one's own before the shared emulator, or before another front.
func newFront(t testing.TB, backend string, opts front.Options) (*front.Server, string) {
	t.Helper()
	s, err := front.New(t.Context(), backend, opts)
	require.NoError(t, err)
	return s, serve(t, s)
}

// serve serves at the address it returns, until the test has ended.
func serve(t testing.TB, s *front.Server) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(lis) }()
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.NoError(t, <-served)
	})
	return lis.Addr().String()
}

// fronted is a database with a front of its own and a raw client of it.
func fronted(t testing.TB, opts front.Options) (*raw, *front.Server) {
	t.Helper()
	db := emulatortest.Database(t, table)
	s, addr := newFront(t, db.Emulator().BackendAddr(), opts)
	return newRaw(t, addr, db.Name), s
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, patience, time.Millisecond, what)
}

// quiet is for tests that make the front complain.
var quiet = slog.New(slog.DiscardHandler)

// clientAt is Google's client for a front of one's own.
func clientAt(t testing.TB, addr, database string) *spanner.Client {
	t.Helper()
	c, err := spanner.NewClientWithConfig(t.Context(), database, spanner.ClientConfig{DisableNativeMetrics: true}, emulator.ClientOptions(addr)...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// garbage sends what no message is.
type garbage struct{}

func (garbage) Marshal(any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer("\xff\xff\xff\xff")}, nil
}
func (garbage) Unmarshal(mem.BufferSlice, any) error { return nil }
func (garbage) Name() string                         { return "proto" }
