package queuetest_test

import (
	"testing"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuetest"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

var mails = schema.Queue{
	Name: "Mails",
	KeyColumns: []schema.Column{
		{Name: "Customer", Type: schema.String(20)},
		{Name: "Id", Type: schema.Int64(), NotNull: true},
	},
	Payload: schema.String(100),
}

func out(id int, payload string) queue.Outgoing {
	return queue.Outgoing{Key: spanner.Key{"c", id}, Payload: []byte(payload)}
}

func send(t *testing.T, m *queuetest.Memory, messages ...queue.Outgoing) {
	t.Helper()
	require.NoError(t, m.Queue().Send(t.Context(), messages))
}
