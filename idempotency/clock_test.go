package idempotency_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"cloud.google.com/go/spanner"
	sppb "cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/idempotency"
)

// Every time in a record is the database's own: a time that is written is the
// placeholder of the commit timestamp, or one that was read from the record.
func TestTimesAreTheDatabases(t *testing.T) {
	t.Parallel()
	b, p := newTrip(t, idempotency.Config{})
	var mu sync.Mutex
	written := map[string][]string{} // by column
	b.count(t, fault.Rule{Method: "Commit", Match: func(c fault.Call) bool {
		mu.Lock()
		defer mu.Unlock()
		for _, m := range c.Request.(*sppb.CommitRequest).Mutations {
			w := m.GetInsert()
			if w == nil {
				w = m.GetUpdate()
			}
			if w.GetTable() != "Operations" {
				continue
			}
			for i, column := range w.Columns {
				if slices.Contains([]string{"LeasedAt", "CreatedAt", "CompletedAt"}, column) {
					written[column] = append(written[column], w.Values[0].Values[i].GetStringValue())
				}
			}
		}
		return true
	}})
	const server = "spanner.commit_timestamp()"
	p.crash = "charge"
	_, err := p.order(t.Context()) // claim, ride, charge, release
	require.ErrorIs(t, err, errCrash)
	created := b.column(t, "CreatedAt")
	p.crash = ""
	_, err = p.order(t.Context()) // claim, end
	require.NoError(t, err)
	_, err = b.store.Do(t.Context(), op, payload("p"), nothing)
	require.NoError(t, err)

	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, []string{server, server, server, server, server, server, server}, written["LeasedAt"])
	require.Equal(t, []string{"", "", "", "", "", server, server}, written["CompletedAt"])
	require.Equal(t, []string{server, created, created, created, created, created, server}, written["CreatedAt"])
}

// column reads a column of the ride's record in the form in which it travels.
func (b *bench) column(t *testing.T, name string) string {
	t.Helper()
	row, err := b.client.Single().ReadRow(context.Background(), "Operations", spanner.Key{ride.Scope, ride.Name, ride.Key}, []string{name})
	require.NoError(t, err)
	var v spanner.GenericColumnValue
	require.NoError(t, row.Column(0, &v))
	return v.Value.GetStringValue()
}
