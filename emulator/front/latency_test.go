package front_test

import (
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
)

func TestLatencyIsFelt(t *testing.T) {
	t.Parallel()
	const wait = time.Second // a loaded machine takes some of it for anything
	r, _ := fronted(t, front.Options{Latency: front.Latency{Commit: front.Wait{Fixed: wait}}})
	begun := time.Now()
	_, err := r.sql(r.ctx(), nil, "SELECT 1")
	require.NoError(t, err)
	require.Less(t, time.Since(begun), wait)
	begun = time.Now()
	_, err = r.apply(r.ctx(), insert("a"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(begun), wait)
}

func TestInReadWrite(t *testing.T) {
	t.Parallel()
	r, _ := fronted(t, front.Options{})
	rw, ro := byID(r.begin(readWrite)), byID(r.begin(strong))
	for name, test := range map[string]struct {
		req  proto.Message
		want bool
	}{
		"statement":              {&spannerpb.ExecuteSqlRequest{Transaction: rw}, true},
		"statement that begins":  {&spannerpb.ExecuteSqlRequest{Transaction: begins(readWrite)}, true},
		"batch":                  {&spannerpb.ExecuteBatchDmlRequest{Transaction: rw}, true},
		"read":                   {&spannerpb.ReadRequest{Transaction: rw}, true},
		"commit":                 {&spannerpb.CommitRequest{Transaction: &spannerpb.CommitRequest_TransactionId{TransactionId: rw.GetId()}}, true},
		"single-use commit":      {&spannerpb.CommitRequest{Transaction: &spannerpb.CommitRequest_SingleUseTransaction{SingleUseTransaction: readWrite}}, true},
		"read-only":              {&spannerpb.ExecuteSqlRequest{Transaction: ro}, false},
		"read-only that begins":  {&spannerpb.ReadRequest{Transaction: begins(strong)}, false},
		"single use":             {&spannerpb.ExecuteSqlRequest{Transaction: once(strong)}, false},
		"nothing said":           {&spannerpb.ExecuteSqlRequest{}, false},
		"rollback":               {&spannerpb.RollbackRequest{TransactionId: rw.GetId()}, false},
		"begin":                  {&spannerpb.BeginTransactionRequest{Options: readWrite}, false},
		"a request without type": {nil, false},
	} {
		require.Equal(t, test.want, front.InReadWrite(fault.Call{Request: test.req}), name)
	}
}
