package table

import (
	"testing"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// The acknowledgement by one statement has the same fence.
func TestAckStatement(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	a, b := w.bare(Options{LeaseLength: soon}), w.bare(Options{LeaseLength: long})
	run := func(d backend.Delivery) error {
		stmt, err := a.AckStatement(d)
		require.NoError(t, err)
		_, err = a.client.ReadWriteTransaction(t.Context(), updateOnce(stmt))
		return err
	}
	require.NoError(t, a.CheckStatements())
	late, present := w.loseLease(a, b)
	require.Equal(t, codes.OutOfRange, spanner.ErrCode(run(late)))
	moved := present
	moved.DeliverTime = present.DeliverTime.Add(1)
	require.Equal(t, codes.OutOfRange, spanner.ErrCode(run(moved)))
	unclaimed := present
	unclaimed.Token = ""
	require.Equal(t, codes.OutOfRange, spanner.ErrCode(run(unclaimed)))
	require.NoError(t, run(present))
	require.Equal(t, codes.OutOfRange, spanner.ErrCode(run(present)))

	w.send(a, "m2")
	peeked, err := a.Peek(t.Context(), 1)
	require.NoError(t, err)
	require.NoError(t, run(peeked[0]), "what nobody has claimed has no token")

	_, err = a.AckStatement(backend.Delivery{Key: spanner.Key{"a", "b"}})
	require.ErrorContains(t, err, "not of queue table T")
	_, apart := a.ForgetStatement(present)
	require.False(t, apart)
	require.ErrorContains(t, (&Queue{schema: ordered(), table: "T"}).CheckStatements(), "keeps its messages in order")
}
