package front_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
)

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		opts front.Options
		want string
	}{
		"lease":      {front.Options{LeaseLength: time.Millisecond}, "front: Options.LeaseLength is 1ms, want at least 50ms"},
		"idle":       {front.Options{IdleBound: -time.Second}, "front: Options.IdleBound is -1s, want at least 10ms"},
		"closed":     {front.Options{ClosedBound: time.Millisecond}, "front: Options.ClosedBound is 1ms, want at least 10ms"},
		"redelivery": {front.Options{Redelivery: []time.Duration{0, -1}}, "front: Options.Redelivery[1] is -1ns, want 0 or more"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := front.New(t.Context(), "localhost:1", test.opts)
			require.EqualError(t, err, test.want)
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := front.New(ended, "localhost:1", front.Options{})
	require.ErrorIs(t, err, context.Canceled)
}

func TestEveryAnswerNamesTheFront(t *testing.T) {
	t.Parallel()
	r, s := fronted(t, front.Options{Logger: quiet})
	s.Faults().Add(fault.Rule{SQL: "SELECT 3", Do: fault.Before(codes.Internal, "x")})
	s.Faults().Add(fault.Rule{SQL: "SELECT 4", Match: func(fault.Call) bool { panic("x") }, Do: fault.Abort()})
	for name, call := range map[string]func(header grpc.CallOption) error{
		"an answer": func(h grpc.CallOption) error {
			_, err := r.ExecuteSql(r.ctx(), &spannerpb.ExecuteSqlRequest{Session: r.session, Sql: "SELECT 1"}, h)
			return err
		},
		"an error": func(h grpc.CallOption) error {
			_, err := r.ExecuteSql(r.ctx(), &spannerpb.ExecuteSqlRequest{Session: r.session, Sql: "SELEC"}, h)
			return err
		},
		"a fault": func(h grpc.CallOption) error {
			_, err := r.ExecuteSql(r.ctx(), &spannerpb.ExecuteSqlRequest{Session: r.session, Sql: "SELECT 3"}, h)
			return err
		},
		"a panic": func(h grpc.CallOption) error {
			_, err := r.ExecuteSql(r.ctx(), &spannerpb.ExecuteSqlRequest{Session: r.session, Sql: "SELECT 4"}, h)
			return err
		},
		"a stream": func(h grpc.CallOption) error {
			_, err := all(r.ExecuteStreamingSql(r.ctx(), &spannerpb.ExecuteSqlRequest{Session: r.session, Sql: "SELECT 1"}, h))
			return err
		},
		"another service": func(h grpc.CallOption) error {
			_, err := instancepb.NewInstanceAdminClient(r.conn).ListInstances(r.ctx(), &instancepb.ListInstancesRequest{Parent: "projects/p"}, h)
			return err
		},
		"an unknown method": func(h grpc.CallOption) error {
			return r.conn.Invoke(r.ctx(), "/google.spanner.v1.Spanner/Nope", new(emptypb.Empty), new(emptypb.Empty), h)
		},
		"an unknown service": func(h grpc.CallOption) error {
			return r.conn.Invoke(r.ctx(), "/nobody.Knows/Nope", new(emptypb.Empty), new(emptypb.Empty), h)
		},
		"a request that does not parse": func(h grpc.CallOption) error {
			return r.conn.Invoke(r.ctx(), "/google.spanner.v1.Spanner/Commit", &emptypb.Empty{}, new(emptypb.Empty), h, grpc.ForceCodecV2(garbage{}))
		},
	} {
		var header metadata.MD
		err := call(grpc.Header(&header))
		require.Equal(t, []string{front.Version}, header.Get(front.VersionHeader), "%s: %v", name, err)
	}
}

// What the front does not know, the emulator answers.
func TestPassThrough(t *testing.T) {
	t.Parallel()
	r, s := fronted(t, front.Options{})
	instances, err := instancepb.NewInstanceAdminClient(r.conn).ListInstances(r.ctx(), &instancepb.ListInstancesRequest{Parent: "projects/emulatortest"})
	require.NoError(t, err)
	require.NotEmpty(t, instances.GetInstances())
	db, err := r.admin().GetDatabase(r.ctx(), &databasepb.GetDatabaseRequest{Name: r.database})
	require.NoError(t, err)
	require.Equal(t, databasepb.Database_READY, db.GetState())
	_, err = r.admin().GetDatabase(r.ctx(), &databasepb.GetDatabaseRequest{Name: r.database + "2"})
	requireCode(t, codes.NotFound, err)
	require.NotEmpty(t, status.Convert(err).Details(), "details of the emulator's error are lost")
	err = r.conn.Invoke(r.ctx(), "/google.spanner.v1.Spanner/FetchCacheUpdate", new(emptypb.Empty), new(emptypb.Empty))
	requireCode(t, codes.Unimplemented, err)
	require.EqualValues(t, 2, s.RPCs()["GetDatabase"])
	require.EqualValues(t, 1, s.RPCs()["ListInstances"])
	require.EqualValues(t, 1, s.RPCs()["FetchCacheUpdate"])
}

func TestOperationsShowWhatWasDeclared(t *testing.T) {
	t.Parallel()
	r, _ := fronted(t, front.Options{})
	const queue = "CREATE QUEUE Q (Id INT64 NOT NULL, Payload STRING(MAX) NOT NULL) PRIMARY KEY (Id)"
	statements := []string{"CREATE TABLE U (Id INT64) PRIMARY KEY (Id)", queue}
	ops := longrunningpb.NewOperationsClient(r.conn)
	shown := func(op *longrunningpb.Operation, err error) []string {
		t.Helper()
		require.NoError(t, err)
		require.True(t, op.GetDone())
		require.NoError(t, status.FromProto(op.GetError()).Err())
		var m databasepb.UpdateDatabaseDdlMetadata
		require.NoError(t, op.GetMetadata().UnmarshalTo(&m))
		require.Len(t, m.GetCommitTimestamps(), len(m.GetStatements()))
		again, err := ops.GetOperation(r.ctx(), &longrunningpb.GetOperationRequest{Name: op.GetName()})
		require.NoError(t, err)
		require.True(t, proto.Equal(op, again), "%v", again)
		list, err := ops.ListOperations(r.ctx(), &longrunningpb.ListOperationsRequest{Name: r.database + "/operations"})
		require.NoError(t, err)
		require.True(t, slices.ContainsFunc(list.GetOperations(), func(listed *longrunningpb.Operation) bool { return proto.Equal(op, listed) }), "%v", list)
		require.NotContains(t, list.String(), "panqueue_")
		return m.GetStatements()
	}
	update := func(statements ...string) (*longrunningpb.Operation, error) {
		return r.admin().UpdateDatabaseDdl(r.ctx(), &databasepb.UpdateDatabaseDdlRequest{Database: r.database, Statements: statements})
	}
	require.Equal(t, statements, shown(update(statements...)))
	// Nothing is left for the emulator to do.
	again := strings.Replace(queue, "CREATE QUEUE", "CREATE QUEUE IF NOT EXISTS", 1)
	require.Equal(t, []string{again}, shown(update(again)))
	_, err := ops.GetOperation(r.ctx(), &longrunningpb.GetOperationRequest{Name: r.database + "/operations/nope"})
	requireCode(t, codes.NotFound, err)
	_, err = update()
	require.Error(t, err, "an empty batch")
}

func TestPostgreSQLPassesThrough(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t)
	r := newRaw(t, db.Endpoint(), db.Name)
	name := strings.Replace(db.Name, "/databases/test", "/databases/pg", 1)
	_, err := r.admin().CreateDatabase(r.ctx(), &databasepb.CreateDatabaseRequest{
		Parent: name[:strings.Index(name, "/databases/")], CreateStatement: `CREATE DATABASE "pg"`, DatabaseDialect: databasepb.DatabaseDialect_POSTGRESQL,
	})
	require.NoError(t, err)
	change := func(statement string) error {
		_, err := r.admin().UpdateDatabaseDdl(r.ctx(), &databasepb.UpdateDatabaseDdlRequest{Database: name, Statements: []string{statement}})
		return err
	}
	require.NoError(t, change("CREATE TABLE t (id bigint PRIMARY KEY, n double precision)"))
	requireCode(t, codes.Unimplemented, change("create queue q (id bigint NOT NULL, payload bytea NOT NULL, PRIMARY KEY (id))"))
	pg := newRaw(t, db.Endpoint(), name)
	rs, err := pg.sql(pg.ctx(), begins(readWrite), "INSERT INTO t (id, n) VALUES (1, 2.5) RETURNING n")
	require.NoError(t, err)
	require.Len(t, rs.GetRows(), 1)
	_, err = pg.commit(pg.ctx(), rs.GetMetadata().GetTransaction().GetId())
	require.NoError(t, err)
	ddl, err := r.admin().GetDatabaseDdl(r.ctx(), &databasepb.GetDatabaseDdlRequest{Database: name})
	require.NoError(t, err)
	require.Len(t, ddl.GetStatements(), 1)
}

// A database that is dropped takes along what the front had of it, and another of the same name begins anew.
func TestDroppedDatabase(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t)
	s, addr := newFront(t, db.Emulator().BackendAddr(), front.Options{})
	setup := newRaw(t, addr, db.Name)
	name := strings.Replace(db.Name, "/databases/test", "/databases/again", 1)
	for range 2 {
		_, err := setup.admin().CreateDatabase(setup.ctx(), &databasepb.CreateDatabaseRequest{
			Parent: name[:strings.Index(name, "/databases/")], CreateStatement: "CREATE DATABASE again", ExtraStatements: []string{table},
		})
		require.NoError(t, err)
		r := newRaw(t, addr, name)
		tx := r.hold("open")
		require.Equal(t, 1, s.Stats().OpenTransactions)
		_, err = r.admin().DropDatabase(r.ctx(), &databasepb.DropDatabaseRequest{Database: name})
		require.NoError(t, err)
		require.Zero(t, s.Stats().OpenTransactions)
		_, err = r.sql(r.ctx(), byID(tx), "SELECT 1")
		requireCode(t, codes.Aborted, err)
		_, err = r.sql(r.ctx(), begins(readWrite), "SELECT 1")
		requireCode(t, codes.NotFound, err)
		_, err = r.sql(r.ctx(), nil, "SELECT 1")
		requireCode(t, codes.NotFound, err)
	}
}

// The emulator's limit decides, not gRPC's.
func TestLargeMessages(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, "CREATE TABLE Blob (Id INT64, B BYTES(MAX)) PRIMARY KEY (Id)")
	r := newRaw(t, db.Endpoint(), db.Name, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(128<<20), grpc.MaxCallSendMsgSize(128<<20)))
	value := structpb.NewStringValue(strings.Repeat("AAAA", 9<<20/4)) // base64, 6.75 MiB of bytes
	m := &spannerpb.Mutation_Write{Table: "Blob", Columns: []string{"Id", "B"}}
	for _, id := range []string{"1", "2", "3"} {
		m.Values = append(m.Values, &structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue(id), value}})
	}
	_, err := r.apply(r.ctx(), &spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: m}})
	require.NoError(t, err)
	parts, err := all(r.StreamingRead(r.ctx(), &spannerpb.ReadRequest{Session: r.session, Table: "Blob", Columns: []string{"B"}, KeySet: &spannerpb.KeySet{All: true}}))
	require.NoError(t, err)
	var got strings.Builder
	for _, p := range parts {
		for _, v := range p.GetValues() {
			got.WriteString(v.GetStringValue())
		}
	}
	require.Equal(t, 3*len(value.GetStringValue()), got.Len())

	whole, err := r.Read(r.ctx(), &spannerpb.ReadRequest{Session: r.session, Table: "Blob", Columns: []string{"B"}, KeySet: &spannerpb.KeySet{All: true}, Limit: 1})
	require.NoError(t, err)
	require.Len(t, whole.GetRows(), 1)
}

// An emulator that hangs does not hold up Close.
func TestCloseBeforeAnEmulatorThatHangs(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	s, err := front.New(t.Context(), silent.Addr().String(), front.Options{})
	require.NoError(t, err)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(lis) }()
	conn, err := grpc.NewClient("passthrough:///"+lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	answered := make(chan error, 2)
	go func() {
		_, err := spannerpb.NewSpannerClient(conn).CreateSession(context.Background(), &spannerpb.CreateSessionRequest{Database: "projects/p/instances/i/databases/d"})
		answered <- err
	}()
	go func() {
		_, err := databasepb.NewDatabaseAdminClient(conn).ListDatabases(context.Background(), &databasepb.ListDatabasesRequest{Parent: "projects/p/instances/i"})
		answered <- err
	}()
	eventually(t, "the calls do not arrive", func() bool { return s.RPCs()["CreateSession"] == 1 && s.RPCs()["ListDatabases"] == 1 })
	begin := time.Now()
	require.NoError(t, s.Close())
	require.Less(t, time.Since(begin), 10*time.Second)
	require.NoError(t, <-served)
	require.Error(t, <-answered)
	require.Error(t, <-answered)
}

// A commit that was sent is waited for, but not for ever.
func TestCloseDuringACommitThatHangs(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, table)
	inner, innerAddr := newFront(t, db.Emulator().BackendAddr(), front.Options{})
	outer, outerAddr := newFront(t, innerAddr, front.Options{})
	r := newRaw(t, outerAddr, db.Name)
	tx := r.hold("a")
	h := inner.Faults().Add(fault.Rule{Method: "Commit", Do: fault.Hold()})
	committed := make(chan error, 1)
	go func() {
		_, err := r.commit(r.ctx(), tx)
		committed <- err
	}()
	require.NoError(t, h.Wait(r.ctx()))
	begin := time.Now()
	require.NoError(t, outer.Close())
	require.Less(t, time.Since(begin), 10*time.Second)
	require.Error(t, <-committed)
}
