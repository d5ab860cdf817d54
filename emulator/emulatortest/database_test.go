package emulatortest_test

import (
	"context"
	"fmt"
	"testing"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
)

func TestMain(m *testing.M) { emulatortest.Main(m) }

const accountTable = `CREATE TABLE Account (Id INT64 NOT NULL, Points INT64) PRIMARY KEY (Id)`

// count reads how many rows a table has.
func count(t *testing.T, c *spanner.Client, table string) int64 {
	t.Helper()
	var n int64
	err := c.Single().Query(t.Context(), spanner.NewStatement("SELECT COUNT(*) FROM "+table)).Do(func(r *spanner.Row) error {
		return r.Column(0, &n)
	})
	require.NoError(t, err)
	return n
}

func insert(ctx context.Context, c *spanner.Client, id int64) error {
	_, err := c.Apply(ctx, []*spanner.Mutation{spanner.Insert("Account", []string{"Id", "Points"}, []any{id, 1})})
	return err
}

func TestEachTestHasADatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			c := emulatortest.Database(t, accountTable).Client(t)
			require.Zero(t, count(t, c, "Account"))
			require.NoError(t, insert(t.Context(), c, 1))
			require.EqualValues(t, 1, count(t, c, "Account"))
		})
	}
}

func TestBareClientSeesTheSameDatabase(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, accountTable)
	require.NoError(t, insert(t.Context(), db.Client(t), 7))
	require.EqualValues(t, 1, count(t, db.Bare(t), "Account"))
}
