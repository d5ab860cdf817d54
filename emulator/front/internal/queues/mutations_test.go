package queues_test

import (
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues"
)

const (
	table = `CREATE TABLE Plain (Id INT64 NOT NULL, V STRING(MAX)) PRIMARY KEY (Id)`
	// A key of all that makes keys special: an order of its own, a generated part, a NULL.
	wideQueue = `CREATE QUEUE Wide (
  B STRING(10),
  A INT64 NOT NULL,
  Shard INT64 NOT NULL AS (MOD(A, 4)) STORED HIDDEN,
  Payload JSON NOT NULL
) PRIMARY KEY (Shard, A DESC, B)`
)

func ackIgnoring(id string) *spannerpb.Mutation {
	m := ack(id)
	m.GetAck().IgnoreNotFound = true
	return m
}

func TestAck(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{}, taskQueue, table)
	require.NoError(t, b.commit(send("a", "")))
	require.Equal(t, codes.AlreadyExists, status.Code(b.commit(send("a", ""))))

	err := b.commit(ack("missing"))
	require.Equal(t, codes.NotFound, status.Code(err))
	require.ErrorContains(t, err, "Tasks")
	require.ErrorContains(t, err, "missing")
	require.NoError(t, b.commit(ackIgnoring("missing")))

	// An ack that misses keeps everything else from being committed.
	insert := &spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: &spannerpb.Mutation_Write{
		Table: "Plain", Columns: []string{"Id"}, Values: []*structpb.ListValue{key("1")}}}}
	require.Equal(t, codes.NotFound, status.Code(b.commit(insert, ack("missing"))))
	require.NoError(t, b.commit(insert, ack("a")))
	require.Equal(t, codes.NotFound, status.Code(b.commit(ack("a"))), "it was acknowledged")
	require.Equal(t, codes.NotFound, status.Code(b.commit(send("b", ""), ack("missing"))))
	require.NoError(t, b.commit(send("b", "")), "nothing of the failed commit was kept")
	err = b.commit(ack("b"), ack("b"))
	require.Equal(t, codes.NotFound, status.Code(err), "twice in one commit: %v", err)
	require.NoError(t, b.commit(ack("b"), ackIgnoring("b")))
}

func TestMutationsThatAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{}, taskQueue, table, `CREATE QUEUE Closed (Id INT64 NOT NULL, Payload STRING(MAX) NOT NULL) PRIMARY KEY (Id), OPTIONS (disable_send = true)`)
	write := &spannerpb.Mutation_Write{Table: "TASKS", Columns: []string{"Id", "Payload"}, Values: []*structpb.ListValue{key("a", "")}}
	change := func(m *spannerpb.Mutation, f func(*spannerpb.Mutation)) *spannerpb.Mutation { f(m); return m }
	for name, c := range map[string]struct {
		ms     []*spannerpb.Mutation
		code   codes.Code
		reason string
	}{
		"insert":           {[]*spannerpb.Mutation{{Operation: &spannerpb.Mutation_Insert{Insert: write}}}, codes.InvalidArgument, "An Insert mutation cannot be applied to queue Tasks"},
		"update":           {[]*spannerpb.Mutation{{Operation: &spannerpb.Mutation_Update{Update: write}}}, codes.InvalidArgument, "An Update mutation"},
		"insert or update": {[]*spannerpb.Mutation{{Operation: &spannerpb.Mutation_InsertOrUpdate{InsertOrUpdate: write}}}, codes.InvalidArgument, "An InsertOrUpdate mutation"},
		"replace":          {[]*spannerpb.Mutation{{Operation: &spannerpb.Mutation_Replace{Replace: write}}}, codes.InvalidArgument, "A Replace mutation"},
		"ack of no key":    {[]*spannerpb.Mutation{change(ack(""), func(m *spannerpb.Mutation) { m.GetAck().Key = nil })}, codes.InvalidArgument, "1 value(s) are needed, found 0"},
		"ack of two keys":  {[]*spannerpb.Mutation{change(ack(""), func(m *spannerpb.Mutation) { m.GetAck().Key = key("a", "b") })}, codes.InvalidArgument, "1 value(s) are needed, found 2"},
		"send of no key":   {[]*spannerpb.Mutation{change(send("", ""), func(m *spannerpb.Mutation) { m.GetSend().Key = key() })}, codes.InvalidArgument, "(Id)"},
		"send before ack":  {[]*spannerpb.Mutation{send("a", ""), ack("a")}, codes.InvalidArgument, "Ack must come first"},
		"send to a table":  {[]*spannerpb.Mutation{change(send("a", ""), func(m *spannerpb.Mutation) { m.GetSend().Queue = "Plain" })}, codes.NotFound, "Queue not found: Plain"},
		"ack of no queue":  {[]*spannerpb.Mutation{change(ack("a"), func(m *spannerpb.Mutation) { m.GetAck().Queue = "Nothing" })}, codes.NotFound, "Queue not found: Nothing"},
		"send is disabled": {[]*spannerpb.Mutation{change(send("1", ""), func(m *spannerpb.Mutation) { m.GetSend().Queue = "Closed" })}, codes.FailedPrecondition, "disable_send"},
		"no such time":     {[]*spannerpb.Mutation{change(send("a", ""), func(m *spannerpb.Mutation) { m.GetSend().DeliverTime = &timestamppb.Timestamp{Nanos: -1} })}, codes.InvalidArgument, "deliver_time"},
		"no payload":       {[]*spannerpb.Mutation{change(send("a", ""), func(m *spannerpb.Mutation) { m.GetSend().Payload = nil })}, codes.FailedPrecondition, "Payload"},
		"NULL payload":     {[]*spannerpb.Mutation{change(send("a", ""), func(m *spannerpb.Mutation) { m.GetSend().Payload = structpb.NewNullValue() })}, codes.FailedPrecondition, "Payload"},
		"not base64":       {[]*spannerpb.Mutation{change(send("a", ""), func(m *spannerpb.Mutation) { m.GetSend().Payload = structpb.NewStringValue("!") })}, codes.FailedPrecondition, "base64"},
	} {
		err := b.commit(c.ms...)
		require.Equal(t, c.code, status.Code(err), "%s: %v", name, err)
		require.ErrorContains(t, err, c.reason, name)
	}
	_, _, err := b.queues.Statement(t.Context(), b.name, "INSERT INTO closed (Id, Payload) VALUES (1, '')")
	require.Equal(t, codes.FailedPrecondition, status.Code(err))
}

func TestMutationsOfOtherTablesPass(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{}, taskQueue, table)
	ms := []*spannerpb.Mutation{
		{Operation: &spannerpb.Mutation_Update{Update: &spannerpb.Mutation_Write{Table: "Plain"}}},
		{Operation: &spannerpb.Mutation_Delete_{Delete: &spannerpb.Mutation_Delete{Table: "Tasks"}}},
		{},
		nil,
	}
	out, touched, err := b.queues.RewriteMutations(t.Context(), b.name, ms)
	require.NoError(t, err)
	require.Equal(t, ms, out)
	require.Empty(t, touched)
}

func TestMutationKey(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{}, taskQueue)
	for _, m := range []*spannerpb.Mutation{send("a", ""), ack("a"), ackIgnoring("a")} {
		out, err := b.queues.RewriteMutationKey(t.Context(), b.name, m)
		require.NoError(t, err)
		require.Nil(t, out.GetSend())
		require.Nil(t, out.GetAck())
		require.NotNil(t, out.GetOperation())
	}
	out, err := b.queues.RewriteMutationKey(t.Context(), b.name, nil)
	require.NoError(t, err)
	require.Nil(t, out)
}

func TestWideKeys(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{LeaseLength: time.Minute}, wideQueue)
	s := b.open(&spannerpb.ExecuteSqlRequest{Sql: "SELECT *, Shard FROM RECEIVE_Wide() WHERE JSON_VALUE(Payload.kind) != 'skip'"})
	fields := s.next(t).GetMetadata().GetRowType().GetFields()
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.GetName()
	}
	require.Equal(t, "B A Payload DeliverTime SpannerLeaseExpirationTimestamp SpannerLeaseToken SpannerLastBatchMessage Shard", strings.Join(names, " "))

	wide := func(a string, b *structpb.Value) *structpb.ListValue {
		l := key("1", a) // A is 5: the generated part is 1
		l.Values = append(l.Values, b)
		return l
	}
	one, null := wide("5", structpb.NewStringValue("b")), wide("5", structpb.NewNullValue())
	for _, k := range []*structpb.ListValue{one, null} {
		require.NoError(t, b.commit(&spannerpb.Mutation{Operation: &spannerpb.Mutation_Send_{Send: &spannerpb.Mutation_Send{
			Queue: "Wide", Key: k, Payload: structpb.NewStringValue(`{"id":3889108265204450030,"kind":"x"}`)}}}))
		v := s.next(t).GetValues()
		require.Equal(t, k.GetValues()[2].GetStringValue(), v[0].GetStringValue())
		require.Equal(t, "5", v[1].GetStringValue())
		require.Contains(t, v[2].GetStringValue(), "3889108265204450030")
		require.Equal(t, "1", v[7].GetStringValue())
		a := &spannerpb.Mutation{Operation: &spannerpb.Mutation_Ack_{Ack: &spannerpb.Mutation_Ack{Queue: "wide", Key: k}}}
		require.NoError(t, b.commit(a))
		require.Equal(t, codes.NotFound, status.Code(b.commit(a)))
	}
	b.dml(`INSERT INTO Wide (A, Payload) VALUES (6, JSON '{"kind":"skip"}'), (7, JSON '{"kind":"y"}')`)
	require.Equal(t, "7", s.next(t).GetValues()[1].GetStringValue())
}
