package table

import (
	"testing"

	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
)

func TestDetect(t *testing.T) {
	t.Parallel()
	named := schema.QueueTable{Shards: 5, Priorities: 8, OrderColumns: 2, Queue: schema.Queue{
		Name: "Order",
		KeyColumns: []schema.Column{
			{Name: "Shard", Type: schema.Int64(), NotNull: true},
			{Name: "leasetoken", Type: schema.String(schema.Max)},
			{Name: "At", Type: schema.Timestamp()},
		},
		PrimaryKey: []schema.KeyPart{{Column: "At", Desc: true}, {Column: "Shard"}, {Column: "leasetoken"}},
		Payload:    schema.JSON(),
	}}
	ddl := append(named.Statements(), plain().Statements()...)
	db := newDatabase(t, append(ddl,
		"CREATE TABLE Plain (Id INT64, Payload BYTES(MAX)) PRIMARY KEY (Id)",
		"CREATE TABLE Almost (Id INT64, Payload BYTES(MAX) NOT NULL, VisibleAt TIMESTAMP, LeaseToken STRING(36)) PRIMARY KEY (Id)")...)
	client := db.Bare(t)

	got, found, err := Detect(t.Context(), client, "order")
	require.NoError(t, err)
	require.True(t, found)
	want := named // with the key columns in the key's order
	want.Queue.KeyColumns = []schema.Column{named.Queue.KeyColumns[2], named.Queue.KeyColumns[0], named.Queue.KeyColumns[1]}
	require.Equal(t, want, got)

	got, found, err = Detect(t.Context(), client, "T")
	require.NoError(t, err)
	require.True(t, found)
	want = plain()
	want.Queue.PrimaryKey = want.Queue.KeyParts()
	require.Equal(t, want, got)

	for _, name := range []string{"Plain", "Nowhere"} {
		_, found, err = Detect(t.Context(), client, name)
		require.NoError(t, err)
		require.False(t, found, name)
	}
	_, _, err = Detect(t.Context(), client, "Almost")
	require.ErrorContains(t, err, "no queue table", "what nearly is one is told what is missing")
	require.ErrorContains(t, err, "DueTime")
}
