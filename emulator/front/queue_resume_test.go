package front_test

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
)

// A receive stream that breaks is resumed by the client, unseen: every message comes once, under its first lease.
func TestQueueStreamThatBreaksIsResumed(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]fault.Action{
		"refused before it is sent": fault.Before(codes.Internal, "stream terminated by RST_STREAM"),
		"lost after it was sent":    fault.After(codes.Unavailable, "the connection broke"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := emulatortest.Database(t, taskQueue)
			c := db.Client(t)
			var sends []*spanner.Mutation
			for i := range 5 {
				sends = append(sends, spanner.Send("Tasks", spanner.Key{i}, "x"))
			}
			apply(t, c, sends...)
			rule := db.Front().Faults().Add(fault.Rule{Database: db.Name, Method: "ExecuteStreamingSql", SQL: "RECEIVE_Tasks", Rows: true, Nth: 3, Do: broken})
			defer rule.Remove()
			begun := time.Now()
			open := receiveTasks(t, c, "SELECT * FROM RECEIVE_Tasks(max_duration => '4s')")
			tokens := map[int64]string{}
			for range 5 {
				m := open.next(t)
				require.NotContains(t, tokens, m.ID)
				tokens[m.ID] = m.LeaseToken
			}
			require.Equal(t, 1, rule.Applied())
			for _, token := range tokens {
				require.True(t, renewTasks(t, c, token)[0].New.Valid, "the lease that the client knows is the one that runs")
			}
			require.NoError(t, open.end(t))
			require.WithinDuration(t, begun.Add(4*time.Second), time.Now(), 2*time.Second, "it ends when the first one would have")
			require.Empty(t, open.tasks)
		})
	}
}

// What any client sees on the wire: the metadata and a token at once, a token with every row, none twice.
func TestQueueStreamMessages(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, taskQueue)
	c := db.Client(t)
	conn, err := grpc.NewClient("passthrough:///"+db.Endpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	raw := spannerpb.NewSpannerClient(conn)
	session, err := raw.CreateSession(t.Context(), &spannerpb.CreateSessionRequest{Database: db.Name})
	require.NoError(t, err)
	request := &spannerpb.ExecuteSqlRequest{Session: session.GetName(), Sql: "SELECT Id FROM RECEIVE_Tasks(max_duration => '1m')"}
	_, err = raw.ExecuteSql(t.Context(), request)
	require.Equal(t, codes.InvalidArgument, spanner.ErrCode(err), "its rows come while it runs")

	ctx, cancel := context.WithTimeout(t.Context(), queuePatience)
	defer cancel()
	stream, err := raw.ExecuteStreamingSql(ctx, request)
	require.NoError(t, err)
	head, err := stream.Recv()
	require.NoError(t, err)
	require.Len(t, head.GetMetadata().GetRowType().GetFields(), 1)
	require.Empty(t, head.GetValues())
	tokens := map[string]bool{string(head.GetResumeToken()): true}
	for i := range 3 {
		apply(t, c, spanner.Send("Tasks", spanner.Key{i}, "x"))
		row, err := stream.Recv()
		require.NoError(t, err)
		require.Len(t, row.GetValues(), 1)
		require.False(t, row.GetChunkedValue())
		require.Nil(t, row.GetMetadata())
		require.NotEmpty(t, row.GetResumeToken())
		tokens[string(row.GetResumeToken())] = true
	}
	require.Len(t, tokens, 4)
}
