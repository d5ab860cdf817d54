package front_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// fakeEmulator answers as an emulator that knows queues would, or as one that does not. It keeps nothing but what it was
// asked.
type fakeEmulator struct {
	spannerpb.UnimplementedSpannerServer

	knowsQueues bool
	brokenProbe bool // it refuses to make instances

	mu        sync.Mutex
	sessions  int
	begun     int
	probes    int
	databases map[string][]string // statements by database
	asked     []string            // the statements, reads and mutations that came
	open      map[string]bool     // sessions whose transaction has been used and has not ended
	most      int                 // of them at once
}

type fakeDatabases struct {
	databasepb.UnimplementedDatabaseAdminServer
	*fakeEmulator
}

type fakeInstances struct {
	instancepb.UnimplementedInstanceAdminServer
	*fakeEmulator
}

// startFake serves until the test has ended.
func startFake(t *testing.T, knowsQueues bool) (*fakeEmulator, string) {
	t.Helper()
	f := &fakeEmulator{knowsQueues: knowsQueues, databases: make(map[string][]string), open: make(map[string]bool)}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	spannerpb.RegisterSpannerServer(server, f)
	databasepb.RegisterDatabaseAdminServer(server, fakeDatabases{fakeEmulator: f})
	instancepb.RegisterInstanceAdminServer(server, fakeInstances{fakeEmulator: f})
	served := make(chan error, 1)
	go func() { served <- server.Serve(lis) }()
	t.Cleanup(func() {
		server.Stop()
		require.NoError(t, <-served)
	})
	return f, lis.Addr().String()
}

func (f *fakeEmulator) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, fmt.Sprintf(format, args...))
}

// took returns what was asked since the last time, without the front's own questions to the catalogue.
func (f *fakeEmulator) took() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked := slices.DeleteFunc(f.asked, func(s string) bool { return strings.Contains(s, "information_schema") })
	f.asked = nil
	return asked
}

func (f fakeInstances) CreateInstance(_ context.Context, req *instancepb.CreateInstanceRequest) (*longrunningpb.Operation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.probes++
	if f.brokenProbe {
		return nil, status.Error(codes.Unavailable, "not now")
	}
	return done(req.GetInstance())
}

func (f fakeInstances) DeleteInstance(context.Context, *instancepb.DeleteInstanceRequest) (*emptypb.Empty, error) {
	return new(emptypb.Empty), nil
}

func (f fakeInstances) GetInstance(_ context.Context, req *instancepb.GetInstanceRequest) (*instancepb.Instance, error) {
	return &instancepb.Instance{Name: req.GetName(), NodeCount: 1}, nil
}

func (f fakeDatabases) ListDatabases(context.Context, *databasepb.ListDatabasesRequest) (*databasepb.ListDatabasesResponse, error) {
	return new(databasepb.ListDatabasesResponse), nil
}

func (f *fakeEmulator) check(statements []string) error {
	for _, sql := range statements {
		if !f.knowsQueues && strings.HasPrefix(sql, "CREATE QUEUE") {
			return status.Error(codes.InvalidArgument, "Syntax error: Encountered 'QUEUE'")
		}
	}
	return nil
}

func (f fakeDatabases) CreateDatabase(_ context.Context, req *databasepb.CreateDatabaseRequest) (*longrunningpb.Operation, error) {
	if err := f.check(req.GetExtraStatements()); err != nil {
		return nil, err
	}
	name := req.GetParent() + "/databases/" + strings.TrimPrefix(req.GetCreateStatement(), "CREATE DATABASE ")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.databases[name] = req.GetExtraStatements()
	return done(&databasepb.Database{Name: name})
}

func (f fakeDatabases) DropDatabase(_ context.Context, req *databasepb.DropDatabaseRequest) (*emptypb.Empty, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.databases, req.GetDatabase())
	return new(emptypb.Empty), nil
}

func (f fakeDatabases) GetDatabase(_ context.Context, req *databasepb.GetDatabaseRequest) (*databasepb.Database, error) {
	return &databasepb.Database{Name: req.GetName(), DatabaseDialect: databasepb.DatabaseDialect_GOOGLE_STANDARD_SQL}, nil
}

func (f fakeDatabases) UpdateDatabaseDdl(_ context.Context, req *databasepb.UpdateDatabaseDdlRequest) (*longrunningpb.Operation, error) {
	if err := f.check(req.GetStatements()); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.databases[req.GetDatabase()] = append(f.databases[req.GetDatabase()], req.GetStatements()...)
	return done(new(emptypb.Empty))
}

func (f fakeDatabases) GetDatabaseDdl(_ context.Context, req *databasepb.GetDatabaseDdlRequest) (*databasepb.GetDatabaseDdlResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &databasepb.GetDatabaseDdlResponse{Statements: f.databases[req.GetDatabase()]}, nil
}

// done is an operation that has ended.
func done(result proto.Message) (*longrunningpb.Operation, error) {
	response, err := anypb.New(result)
	return &longrunningpb.Operation{Name: "operations/1", Done: true, Result: &longrunningpb.Operation_Response{Response: response}}, err
}

func (f *fakeEmulator) CreateSession(_ context.Context, req *spannerpb.CreateSessionRequest) (*spannerpb.Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sessions++
	return &spannerpb.Session{Name: fmt.Sprintf("%s/sessions/%d", req.GetDatabase(), f.sessions)}, nil
}

func (f *fakeEmulator) DeleteSession(context.Context, *spannerpb.DeleteSessionRequest) (*emptypb.Empty, error) {
	return new(emptypb.Empty), nil
}

func (f *fakeEmulator) BeginTransaction(context.Context, *spannerpb.BeginTransactionRequest) (*spannerpb.Transaction, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun++
	return &spannerpb.Transaction{Id: fmt.Append(nil, f.begun)}, nil
}

// uses notes that a session's transaction is used, or has ended.
func (f *fakeEmulator) uses(session string, inTransaction bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if inTransaction {
		f.open[session] = true
		f.most = max(f.most, len(f.open))
	}
}

func (f *fakeEmulator) ended(session string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, session)
}

func (f *fakeEmulator) ExecuteSql(_ context.Context, req *spannerpb.ExecuteSqlRequest) (*spannerpb.ResultSet, error) {
	f.note("%s", req.GetSql())
	f.uses(req.GetSession(), len(req.GetTransaction().GetId()) > 0)
	return &spannerpb.ResultSet{Metadata: &spannerpb.ResultSetMetadata{RowType: new(spannerpb.StructType)}}, nil
}

// ExecuteStreamingSql answers one row, with the emulator's own tokens.
func (f *fakeEmulator) ExecuteStreamingSql(req *spannerpb.ExecuteSqlRequest, out spannerpb.Spanner_ExecuteStreamingSqlServer) error {
	f.note("stream %s", req.GetSql())
	f.uses(req.GetSession(), len(req.GetTransaction().GetId()) > 0)
	return out.Send(&spannerpb.PartialResultSet{
		Metadata:    &spannerpb.ResultSetMetadata{RowType: &spannerpb.StructType{Fields: []*spannerpb.StructType_Field{{Name: "Id", Type: &spannerpb.Type{Code: spannerpb.TypeCode_INT64}}}}},
		Values:      []*structpb.Value{structpb.NewStringValue("1")},
		ResumeToken: []byte("native"),
	})
}

func (f *fakeEmulator) Commit(_ context.Context, req *spannerpb.CommitRequest) (*spannerpb.CommitResponse, error) {
	for _, m := range req.GetMutations() {
		switch op := m.GetOperation().(type) {
		case *spannerpb.Mutation_Send_:
			f.note("send %s", op.Send.GetQueue())
		case *spannerpb.Mutation_Ack_:
			f.note("ack %s", op.Ack.GetQueue())
		default:
			f.note("%T", op)
		}
	}
	f.ended(req.GetSession())
	return &spannerpb.CommitResponse{CommitTimestamp: timestamppb.Now()}, nil
}

func (f *fakeEmulator) Rollback(_ context.Context, req *spannerpb.RollbackRequest) (*emptypb.Empty, error) {
	f.ended(req.GetSession())
	return new(emptypb.Empty), nil
}
