package idempotency_test

import (
	"testing"

	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/schema"
)

// The table is made as users make it, next to others, and found again.
func TestTableStandsByApply(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, accounts)
	admin, err := database.NewDatabaseAdminClient(t.Context(), db.ClientOptions()...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, admin.Close()) })
	table := schema.Operations{Table: "Payments"}
	first, err := schema.Apply(t.Context(), admin, db.Name, table)
	require.NoError(t, err)
	require.Equal(t, []string{"Payments", "PaymentsByCompletion"}, first.Created)
	second, err := schema.Apply(t.Context(), admin, db.Name, table)
	require.NoError(t, err)
	require.Empty(t, second.Created)

	b := &bench{db: db, client: db.Client(t), table: table}
	store := b.newStore(t, idempotency.Config{})
	for _, replayed := range []bool{false, true} {
		receipt, err := store.Do(t.Context(), op, payload("p"), nothing)
		require.NoError(t, err)
		require.Equal(t, replayed, receipt.Replayed)
	}
}
