package processor_test

import (
	"context"
	"errors"
	"testing"

	"cloud.google.com/go/spanner"
	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
)

// alter executes a statement of DDL.
func (w *world) alter(statement string) {
	w.t.Helper()
	admin, err := database.NewDatabaseAdminClient(w.t.Context(), w.db.ClientOptions()...)
	require.NoError(w.t, err)
	defer admin.Close()
	op, err := admin.UpdateDatabaseDdl(w.t.Context(), &databasepb.UpdateDatabaseDdlRequest{Database: w.db.Name, Statements: []string{statement}})
	require.NoError(w.t, err)
	require.NoError(w.t, op.Wait(w.t.Context()))
}

// A failure whose retry the database refuses is one: the message goes to the dead letters in the end, and does not come
// again for ever.
func TestRefusedRetriesCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("m1")
	w.alter("ALTER QUEUE Q SET OPTIONS (disable_send = TRUE)")
	var seen attemptsSeen
	r := w.work(func(_ context.Context, _ *spanner.ReadWriteTransaction, m *queue.Message) error {
		seen.add(m)
		return errors.New("no luck")
	}, maxAttempts(2))
	r.outcome(processor.DeadLettered, 1)
	require.NoError(t, r.stop())
	// The first start of a fresh message is not on record, and 3 on record are one too many.
	require.Equal(t, []int{1, 1, 2, 3}, seen.list())
	letters := w.letters("m1")
	require.Len(t, letters, 1)
	require.Equal(t, "no outcome", letters[0].Reason)
	require.Zero(t, w.left("m1"))
	require.Zero(t, w.records())
}
