package queues_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues"
)

// The targets of this file know one queue, Tasks, and no emulator: whatever is asked of the package is answered, and
// refusals are statuses.

func requireStatus(t *testing.T, err error) {
	t.Helper()
	if code := status.Code(err); code == codes.Unknown {
		t.Fatalf("an error that is no status: %v", err)
	}
}

// FuzzDDL rewrites batches. What comes out concerns no queue and no role any more.
func FuzzDDL(f *testing.F) {
	for _, batch := range []string{
		taskQueue, "DROP QUEUE Tasks", "DROP QUEUE IF EXISTS `x`;\x00CREATE QUEUE IF NOT EXISTS x (Id INT64, Payload JSON NOT NULL,) PRIMARY KEY (Id DESC)",
		"ALTER QUEUE Tasks SET OPTIONS (disable_send = true)\x00ALTER QUEUE tasks SET OPTIONS (disable_delivery = NULL)",
		"ALTER QUEUE Tasks ADD ROW DELETION POLICY (OLDER_THAN(DeliverTime, INTERVAL 1 DAY))\x00ALTER QUEUE Tasks DROP ROW DELETION POLICY",
		"CREATE QUEUE C (Id STRING(36) NOT NULL, N INT64, Payload BYTES(MAX) NOT NULL) PRIMARY KEY (Id, N), INTERLEAVE IN T\x00ALTER QUEUE C SET INTERLEAVE IN PARENT T ON DELETE CASCADE\x00DROP TABLE T",
		"CREATE ROLE a\x00GRANT SELECT ON QUEUE Tasks TO ROLE a\x00REVOKE SELECT ON QUEUE Tasks FROM ROLE a\x00DROP ROLE a",
		"GRANT EXECUTE ON TABLE FUNCTION RECEIVE_Tasks, x TO ROLE public\x00DROP QUEUE Tasks", "DROP TABLE Tasks", "ALTER TABLE spanqueue_roles DROP COLUMN x", "'", "CREATE QUEUE `\\",
	} {
		f.Add(batch)
	}
	f.Fuzz(func(t *testing.T, batch string) {
		_, q := newEmpty(t)
		defer q.Close()
		out, err := q.RewriteDDL(t.Context(), emptyDB, strings.Split(batch, "\x00"))
		requireStatus(t, err)
		for _, sql := range out {
			if queues.IsQueueDDL(sql) {
				t.Fatalf("the emulator would see %q", sql)
			}
		}
	})
}

// FuzzStatement classifies statements, for sessions with a role and without.
func FuzzStatement(f *testing.F) {
	for _, sql := range []string{
		"SELECT * FROM RECEIVE_Tasks()", "DELETE FROM Tasks WHERE Id = '' ASSERT_ROWS_MODIFIED 1", "INSERT INTO Tasks (Id) SELECT Id FROM (A JOIN@{x=y} Tasks t ON TRUE), UNNEST([1])",
		"@{a=1} ((SELECT 1", "WITH x AS (SELECT * FROM Tasks) SELECT * FROM x", "UPDATE Tasks SET", "FROM", "SELECT @@x, '", "`", "DELETE a.b.c",
	} {
		f.Add(sql, "")
		f.Add(sql, "reader")
	}
	_, q := newEmpty(f)
	defer q.Close()
	f.Fuzz(func(t *testing.T, sql, role string) {
		requireStatus(t, q.AllowStatement(t.Context(), emptyDB, role, sql))
		kind, touched, err := q.Statement(t.Context(), emptyDB, sql)
		requireStatus(t, err)
		if (kind != queues.Pass || err != nil) && len(touched) > 0 {
			t.Fatal("a statement that the emulator does not see touches something")
		}
		q.RewriteClock(sql)
	})
}

// FuzzMutations rewrites the mutations of a commit. What comes out is no mutation of queues any more.
func FuzzMutations(f *testing.F) {
	value := structpb.NewStringValue("x")
	for _, ms := range [][]*spannerpb.Mutation{
		{send("a", "x"), ack("a")}, {ack("a"), send("a", "x"), nil, {}},
		{{Operation: &spannerpb.Mutation_Send_{}}, {Operation: &spannerpb.Mutation_Ack_{}}},
		{{Operation: &spannerpb.Mutation_Send_{Send: &spannerpb.Mutation_Send{Queue: "tasks", Key: &structpb.ListValue{Values: []*structpb.Value{nil, value}}}}}},
		{{Operation: &spannerpb.Mutation_Insert{Insert: &spannerpb.Mutation_Write{Table: "Tasks"}}}},
		{{Operation: &spannerpb.Mutation_Delete_{Delete: &spannerpb.Mutation_Delete{Table: "Tasks", KeySet: &spannerpb.KeySet{All: true}}}}},
	} {
		wire, err := proto.Marshal(&spannerpb.CommitRequest{Mutations: ms})
		require.NoError(f, err)
		f.Add(wire)
	}
	_, q := newEmpty(f)
	defer q.Close()
	f.Fuzz(func(t *testing.T, wire []byte) {
		req := new(spannerpb.CommitRequest)
		if proto.Unmarshal(wire, req) != nil {
			return
		}
		before := proto.Clone(req)
		requireStatus(t, q.AllowMutations(t.Context(), emptyDB, "reader", req.GetMutations()))
		out, _, err := q.RewriteMutations(t.Context(), emptyDB, req.GetMutations())
		requireStatus(t, err)
		if !proto.Equal(before, req) {
			t.Fatal("the client's own mutations were changed")
		}
		if err != nil {
			return
		}
		for _, m := range out {
			if m.GetSend() != nil || m.GetAck() != nil {
				t.Fatalf("the emulator would see %v", m)
			}
		}
	})
}

// FuzzServe answers requests for the two functions.
func FuzzServe(f *testing.F) {
	str := &spannerpb.Type{Code: spannerpb.TypeCode_STRING}
	for _, req := range []*spannerpb.ExecuteSqlRequest{
		{Sql: "SELECT * FROM RECEIVE_Tasks(max_duration => '1ms', max_batch_size => @n)", Params: &structpb.Struct{Fields: map[string]*structpb.Value{"n": structpb.NewStringValue("1")}}, ParamTypes: map[string]*spannerpb.Type{"n": {Code: spannerpb.TypeCode_INT64}}},
		{Sql: "SELECT Id, 1 + 1 FROM RECEIVE_Tasks(max_duration => @d) AS t WHERE t.Id > @d", Params: &structpb.Struct{Fields: map[string]*structpb.Value{"d": structpb.NewStringValue("1ms")}}, ParamTypes: map[string]*spannerpb.Type{"d": str}, ResumeToken: make([]byte, 28)},
		{Sql: "SELECT * FROM RENEWLEASE_Tasks(lease_tokens => ['x', @y])", Params: &structpb.Struct{Fields: map[string]*structpb.Value{"y": nil}}},
		{Sql: "SELECT * FROM RENEWLEASE_Tasks(@tokens)", Params: &structpb.Struct{Fields: map[string]*structpb.Value{"tokens": structpb.NewListValue(nil)}}, ParamTypes: map[string]*spannerpb.Type{"tokens": nil}},
		{Sql: "SELECT * FROM RECEIVE_Tasks(priority => 1)", QueryMode: spannerpb.ExecuteSqlRequest_PLAN, Transaction: &spannerpb.TransactionSelector{Selector: &spannerpb.TransactionSelector_SingleUse{}}},
		{Sql: "SELECT * FROM RECEIVE_Tasks()", PartitionToken: []byte("x")},
	} {
		wire, err := proto.Marshal(req)
		require.NoError(f, err)
		f.Add(wire)
	}
	_, q := newEmpty(f)
	defer q.Close()
	f.Fuzz(func(t *testing.T, wire []byte) {
		req := new(spannerpb.ExecuteSqlRequest)
		if proto.Unmarshal(wire, req) != nil {
			return
		}
		kind, _, err := q.Statement(t.Context(), emptyDB, req.GetSql())
		if err != nil || kind == queues.Pass {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		requireStatus(t, q.ServeStream(ctx, emptyDB, req, func(*spannerpb.PartialResultSet) error { return nil }))
		_, err = q.ServeUnary(ctx, emptyDB, req)
		requireStatus(t, err)
	})
}
