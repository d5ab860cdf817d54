package queues_test

import (
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues"
)

func TestRenew(t *testing.T) {
	t.Parallel()
	const lease = time.Second
	b := newBench(t, queues.Options{LeaseLength: lease}, taskQueue)
	require.Empty(t, b.renew("nothing was leased"))
	require.NoError(t, b.commit(send("acked", ""), send("resent", ""), send("held", "")))
	s := b.receive("")
	tokens := map[string]string{}
	for range 3 {
		m := s.message(t)
		tokens[m.id] = m.lease
	}
	require.NoError(t, b.commit(ack("acked"), ack("resent"), send("resent", "again")))

	begun := time.Now()
	rows := b.renew(tokens["acked"], tokens["held"], "unknown", tokens["resent"], tokens["held"])
	require.Len(t, rows, 3, "the unknown token and the rotated one give no row")
	require.Equal(t, renewal{old: tokens["acked"]}, rows[0])
	require.Equal(t, tokens["held"], rows[1].old)
	require.NotEqual(t, tokens["held"], rows[1].new)
	require.WithinRange(t, rows[1].expires, begun.Add(lease), time.Now().Add(lease))
	require.Equal(t, renewal{old: tokens["resent"]}, rows[2])

	require.Equal(t, "again", s.message(t).payload)
	next := b.renew(rows[1].new)
	require.Len(t, next, 1)
	until(next[0].expires)
	require.Empty(t, b.renew(next[0].new), "the lease has run out")
	require.Contains(t, s.ids(t, 2), "held")
}

func TestRenewIsEvaluated(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{}, taskQueue)
	require.NoError(t, b.commit(send("gone", ""), send("held", "")))
	s := b.receive("")
	one, two := s.message(t), s.message(t)
	require.NoError(t, b.commit(ack("gone")))
	rs, err := b.queues.ServeUnary(t.Context(), b.name, &spannerpb.ExecuteSqlRequest{
		Sql: "SELECT r.SpannerNewLeaseToken, LENGTH(SpannerOldLeaseToken) AS n FROM RENEWLEASE_Tasks(lease_tokens => " +
			quoted([]string{one.lease, two.lease}) + ") r WHERE SpannerNewLeaseToken IS NOT NULL",
		Transaction: &spannerpb.TransactionSelector{Selector: &spannerpb.TransactionSelector_SingleUse{SingleUse: &spannerpb.TransactionOptions{
			Mode: &spannerpb.TransactionOptions_ReadOnly_{ReadOnly: &spannerpb.TransactionOptions_ReadOnly{ReturnReadTimestamp: true}}}}},
	})
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), rs.GetMetadata().GetTransaction().GetReadTimestamp().AsTime(), time.Minute)
	require.Len(t, rs.GetMetadata().GetRowType().GetFields(), 2)
	require.Len(t, rs.GetRows(), 1)
	require.Equal(t, "26", rs.GetRows()[0].GetValues()[1].GetStringValue())
}

func TestOnlyStrongSingleUseReads(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{}, taskQueue)
	readOnly := func(ro *spannerpb.TransactionOptions_ReadOnly) *spannerpb.TransactionOptions {
		return &spannerpb.TransactionOptions{Mode: &spannerpb.TransactionOptions_ReadOnly_{ReadOnly: ro}}
	}
	single := func(o *spannerpb.TransactionOptions) *spannerpb.TransactionSelector {
		return &spannerpb.TransactionSelector{Selector: &spannerpb.TransactionSelector_SingleUse{SingleUse: o}}
	}
	strong := readOnly(&spannerpb.TransactionOptions_ReadOnly{TimestampBound: &spannerpb.TransactionOptions_ReadOnly_Strong{Strong: true}})
	for _, sql := range []string{"SELECT * FROM RECEIVE_Tasks(max_duration => '1ms')", "SELECT * FROM RENEWLEASE_Tasks(lease_tokens => [])"} {
		for name, c := range map[string]struct {
			tx *spannerpb.TransactionSelector
			ok bool
		}{
			"none":               {nil, true},
			"strong":             {single(strong), true},
			"default bound":      {single(readOnly(&spannerpb.TransactionOptions_ReadOnly{})), true},
			"no mode":            {single(&spannerpb.TransactionOptions{}), true},
			"exact staleness":    {single(readOnly(&spannerpb.TransactionOptions_ReadOnly{TimestampBound: &spannerpb.TransactionOptions_ReadOnly_ExactStaleness{}})), false},
			"max staleness":      {single(readOnly(&spannerpb.TransactionOptions_ReadOnly{TimestampBound: &spannerpb.TransactionOptions_ReadOnly_MaxStaleness{}})), false},
			"read timestamp":     {single(readOnly(&spannerpb.TransactionOptions_ReadOnly{TimestampBound: &spannerpb.TransactionOptions_ReadOnly_ReadTimestamp{}})), false},
			"not strong":         {single(readOnly(&spannerpb.TransactionOptions_ReadOnly{TimestampBound: &spannerpb.TransactionOptions_ReadOnly_Strong{}})), false},
			"read-write":         {single(readWrite), false},
			"partitioned":        {single(&spannerpb.TransactionOptions{Mode: &spannerpb.TransactionOptions_PartitionedDml_{}}), false},
			"begin a read-only":  {&spannerpb.TransactionSelector{Selector: &spannerpb.TransactionSelector_Begin{Begin: strong}}, false},
			"begin a read-write": {&spannerpb.TransactionSelector{Selector: &spannerpb.TransactionSelector_Begin{Begin: readWrite}}, false},
			"in a transaction":   {&spannerpb.TransactionSelector{Selector: &spannerpb.TransactionSelector_Id{Id: []byte("x")}}, false},
		} {
			err := b.open(&spannerpb.ExecuteSqlRequest{Sql: sql, Transaction: c.tx}).end(t)
			if c.ok {
				require.NoError(t, err, name)
			} else {
				require.Equal(t, codes.InvalidArgument, status.Code(err), "%s: %v", name, err)
			}
		}
		err := b.open(&spannerpb.ExecuteSqlRequest{Sql: sql, PartitionToken: []byte("x")}).end(t)
		require.Equal(t, codes.InvalidArgument, status.Code(err), "%v", err)
	}
}
