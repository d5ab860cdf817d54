package native

import (
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
)

// odd is a queue whose names are reserved words.
func odd(t *testing.T) *Queue {
	t.Helper()
	q, err := New(new(spanner.Client), schema.Queue{
		Name:       "Select",
		KeyColumns: []schema.Column{{Name: "Order", Type: schema.String(8)}, {Name: "from", Type: schema.Int64()}},
		PrimaryKey: []schema.KeyPart{{Column: "from", Desc: true}, {Column: "Order"}},
		Payload:    schema.Proto("shop.v1.Order"),
	}, Options{})
	require.NoError(t, err)
	return q
}

func TestTextsOfStatements(t *testing.T) {
	t.Parallel()
	q := odd(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 789, time.UTC)
	full := backend.Delivery{Key: spanner.Key{int64(7), "a"}, DeliverTime: at}
	null := backend.Delivery{Key: spanner.Key{spanner.NullInt64{}, spanner.NullString{}}, DeliverTime: at}

	params := make(map[string]any)
	require.Equal(t, "`from` = @k0 AND `Order` = @k1 AND `DeliverTime` = @seen", q.sql.where(full, "", params))
	require.Equal(t, map[string]any{"k0": int64(7), "k1": "a", "seen": at}, params)

	params = make(map[string]any)
	require.Equal(t, "`from` IS NULL AND `Order` IS NULL AND `DeliverTime` = @seen", q.sql.where(null, "", params))
	require.Equal(t, map[string]any{"seen": at}, params, "a parameter that is NULL would match nothing")

	remove := q.deleteStatement([]backend.Delivery{full, null})
	require.Equal(t, "DELETE FROM `Select` WHERE (`from` = @d0_k0 AND `Order` = @d0_k1 AND `DeliverTime` = @d0_seen)"+
		" OR (`from` IS NULL AND `Order` IS NULL AND `DeliverTime` = @d1_seen) THEN RETURN `from`, `Order`, `DeliverTime`", remove.SQL)
	require.Equal(t, map[string]any{"d0_k0": int64(7), "d0_k1": "a", "d0_seen": at, "d1_seen": at}, remove.Params)

	insert, err := q.SendStatement(backend.Outgoing{Key: full.Key, Payload: []byte{1}})
	require.NoError(t, err)
	require.Equal(t, "INSERT INTO `Select` (`from`, `Order`, `Payload`) VALUES (@k0, @k1, CAST(@payload AS shop.v1.`Order`))", insert.SQL)
	require.Equal(t, map[string]any{"k0": int64(7), "k1": "a", "payload": []byte{1}}, insert.Params)
	insert, err = q.SendStatement(backend.Outgoing{Key: null.Key, DeliverTime: at})
	require.NoError(t, err)
	require.Equal(t, "INSERT INTO `Select` (`from`, `Order`, `Payload`, `DeliverTime`) VALUES (@k0, @k1, CAST(@payload AS shop.v1.`Order`), @at)", insert.SQL)
	require.Equal(t, map[string]any{"k0": spanner.NullInt64{}, "k1": spanner.NullString{}, "payload": []byte{}, "at": at}, insert.Params)

	require.Equal(t, "SELECT `from`, `Order`, `Payload`, `DeliverTime`, SpannerLeaseExpirationTimestamp, SpannerLeaseToken, SpannerLastBatchMessage"+
		" FROM RECEIVE_Select(max_duration => '2s', max_batch_size => 5)",
		q.receiveSQL(backend.ReceiveRequest{MaxDuration: 1500 * time.Millisecond, MaxBatch: 5}))
	require.Equal(t, "purge=Select", q.tag("purge"))
}
