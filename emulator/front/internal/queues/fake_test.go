package queues_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues"
	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/backing"
	"github.com/spanqueue/spanqueue/schema"
)

// emptyStore is a database with the queue Tasks and no message, for tests of time: it answers at once, so that a test
// runs in a synctest bubble.
type emptyStore struct {
	declaration string
	turns       atomic.Int64
	reads       atomic.Int64
}

func newEmptyStore(t testing.TB, ddl string) *emptyStore {
	statement, err := schema.ParseStatement(ddl)
	require.NoError(t, err)
	created := backing.New(statement.(*schema.CreateQueue).Queue).Create(ddl, 0)
	declaration := created[len(created)-1]
	from, to := strings.Index(declaration, "DEFAULT (")+len("DEFAULT ("), strings.LastIndex(declaration, ")\n)")
	return &emptyStore{declaration: declaration[from:to]}
}

func (s *emptyStore) InTurn(ctx context.Context, _ string, f func(context.Context, queues.Querier) error) error {
	s.turns.Add(1)
	return f(ctx, s)
}

func (s *emptyStore) Outside(ctx context.Context, _ string, f func(context.Context, queues.Querier) error) error {
	return f(ctx, s)
}

func (s *emptyStore) Read(context.Context, *spannerpb.ReadRequest) (*spannerpb.ResultSet, error) {
	s.reads.Add(1)
	return &spannerpb.ResultSet{}, nil
}

// ExecuteSql answers the catalogue's query, and any other with a result without rows.
func (s *emptyStore) ExecuteSql(_ context.Context, req *spannerpb.ExecuteSqlRequest) (*spannerpb.ResultSet, error) {
	if strings.Contains(req.GetSql(), "information_schema") {
		row := &structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue("spanqueue_queue_Tasks"), structpb.NewStringValue(s.declaration)}}
		return &spannerpb.ResultSet{Rows: []*structpb.ListValue{row}}, nil
	}
	fields := []*spannerpb.StructType_Field{{Name: "Id"}, {Name: "position"}}
	return &spannerpb.ResultSet{Metadata: &spannerpb.ResultSetMetadata{RowType: &spannerpb.StructType{Fields: fields}}}, nil
}

func (s *emptyStore) KnowsQueues(context.Context) (bool, error) { return false, nil }

func (s *emptyStore) Instance(_ context.Context, database string) (queues.Instance, error) {
	return queues.Instance{ProcessingUnits: 1000, Databases: []string{database}}, nil
}
