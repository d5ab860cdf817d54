package main

import (
	"bytes"
	"context"
	"testing"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/api/option"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/queue"
)

func TestKindOf(t *testing.T) {
	t.Parallel()
	tag := func(tag string) *spannerpb.RequestOptions { return &spannerpb.RequestOptions{TransactionTag: tag} }
	const service = "/google.spanner.v1.Spanner/"
	for _, c := range []struct {
		want   rpcKind
		method string
		req    any
	}{
		{rpcSession, "CreateSession", &spannerpb.CreateSessionRequest{}},
		{rpcReceive, "ExecuteStreamingSql", &spannerpb.ExecuteSqlRequest{Sql: "SELECT x FROM RECEIVE_T(max_duration => '1s')"}},
		{rpcReceive, "StreamingRead", &spannerpb.ReadRequest{Table: "T", Index: "TByVisibleAt"}},
		{rpcRenew, "ExecuteStreamingSql", &spannerpb.ExecuteSqlRequest{Sql: "SELECT x FROM RENEWLEASE_T(lease_tokens => [@t0])"}},
		{rpcRenew, "StreamingRead", &spannerpb.ReadRequest{Table: "T", RequestOptions: tag("renew=T")}},
		{rpcRenew, "Commit", &spannerpb.CommitRequest{RequestOptions: tag("renew=T")}},
		{rpcClock, "ExecuteStreamingSql", &spannerpb.ExecuteSqlRequest{Sql: "SELECT CURRENT_TIMESTAMP()"}},
		{rpcCommit, "Commit", &spannerpb.CommitRequest{RequestOptions: tag("queue=T,handler=w1")}},
		{rpcCommit, "Commit", &spannerpb.CommitRequest{RequestOptions: tag("claim=T")}},
		{rpcWork, "ExecuteSql", &spannerpb.ExecuteSqlRequest{Sql: "DELETE FROM T", RequestOptions: tag("queue=T,handler=w1")}},
		{rpcWork, "StreamingRead", &spannerpb.ReadRequest{Table: "Effects"}},
	} {
		require.Equal(t, c.want, kindOf(service+c.method, c.req), "%v", c.req)
	}
}

// A worker tells of each message that it receives and of each Commit that acknowledges, whatever the kind of the queue.
func TestWireTellsWhatCame(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{nativeQueue, tableQueue} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			on := setting{Queue: kind, Emulator: onFront}
			var ddl []string
			for _, element := range on.elements(txQueue) {
				ddl = append(ddl, element.Statements()...)
			}
			db := emulatortest.Database(t, ddl...)
			var out bytes.Buffer
			wire := newWire(&teller{out: &out})
			var opts []option.ClientOption
			for _, o := range wire.options() {
				opts = append(opts, option.WithGRPCDialOption(o))
			}
			client := db.Client(t, opts...)
			q, err := on.openQueue(client, txQueue)
			require.NoError(t, err)
			require.NoError(t, q.Send(t.Context(), []queue.Outgoing{{Key: spanner.Key{"T000001"}}}))
			for m, err := range q.Receive(t.Context(), queue.ReceiveOptions{}) {
				require.NoError(t, err)
				_, err := client.ReadWriteTransactionWithOptions(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
					return q.Ack(ctx, tx, m)
				}, spanner.TransactionOptions{TransactionTag: "queue=T,handler=w1"})
				require.NoError(t, err)
				break
			}
			require.Equal(t, "came T000001\ncommit\nanswered\n", out.String(), "other commits are not work")
			require.Positive(t, wire.rpcs()[rpcReceive])
			require.Positive(t, wire.rpcs()[rpcCommit])
		})
	}
}
