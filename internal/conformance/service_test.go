package conformance_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
	"google.golang.org/api/option"
)

// services are the kinds on the database that the user names, if one is named.
func services() []kind {
	name := os.Getenv("SPANQUEUE_TEST_DATABASE")
	if name == "" {
		return nil
	}
	return []kind{
		{"service, native", func(t *testing.T, _ time.Duration) *house { return onService(t, name, false) }},
		{"service, table", func(t *testing.T, _ time.Duration) *house { return onService(t, name, true) }},
	}
}

var made atomic.Int64

// dropTimeout bounds the removal of what a test has made.
const dropTimeout = 15 * time.Minute

// onService makes a queue of its own in the given database, and drops it at the end.
func onService(t *testing.T, name string, table bool, opts ...option.ClientOption) *house {
	t.Helper()
	d := definition(fmt.Sprintf("SpanqueueTest%d_%d", os.Getpid(), made.Add(1)))
	admin, err := database.NewDatabaseAdminClient(t.Context(), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = admin.Close() })
	all := append(elements(d, table), effectsTable(d.Name))
	t.Cleanup(func() { dropAll(t, admin, name, all) }) // also when Apply fails half way
	_, err = schema.Apply(t.Context(), admin, name, all...)
	require.NoError(t, err)
	return inSpanner(t, d, table, long, func() *spanner.Client {
		c, err := spanner.NewClientWithConfig(context.Background(), name, spanner.ClientConfig{DisableNativeMetrics: true}, opts...)
		require.NoError(t, err)
		t.Cleanup(c.Close)
		return c
	})
}

// dropAll drops what the elements' statements have created, in one batch.
func dropAll(t *testing.T, admin *database.DatabaseAdminClient, name string, elements []schema.Element) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), dropTimeout)
	defer cancel()
	drops := dropStatements(elements)
	op, err := admin.UpdateDatabaseDdl(ctx, &databasepb.UpdateDatabaseDdlRequest{Database: name, Statements: drops})
	if err == nil {
		err = op.Wait(ctx)
	}
	if err != nil {
		t.Errorf("drop what the test made, by hand: %s: %v", strings.Join(drops, "; "), err)
	}
}

// dropStatements undoes what the elements create, the last first: an index goes before its table.
func dropStatements(elements []schema.Element) []string {
	var drops []string
	for _, element := range elements {
		for _, statement := range element.Statements() {
			words := strings.Fields(statement)
			drop := fmt.Sprintf("DROP %s IF EXISTS %s", words[1], words[2])
			drops = append([]string{drop}, drops...)
		}
	}
	return drops
}

// What the suite makes in a database of the user's works there, and is gone at the end. An emulator stands in for the
// database: the code is the same.
func TestServiceIsCleanedUp(t *testing.T) {
	t.Parallel()
	for _, table := range []bool{false, true} {
		t.Run(fmt.Sprintf("table: %v", table), func(t *testing.T) {
			t.Parallel()
			db := emulatortest.New(t, emulator.Options{}).Database(t)
			client := db.Client(t)
			objects := func() (n int64) {
				stmt := spanner.NewStatement("SELECT COUNT(*) FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_NAME LIKE 'SpanqueueTest%'")
				require.NoError(t, client.Single().Query(context.Background(), stmt).Do(func(r *spanner.Row) error { return r.Columns(&n) }))
				return n
			}
			t.Run("use", func(t *testing.T) {
				h := onService(t, db.Name, table, db.ClientOptions()...)
				require.NotZero(t, objects())
				everyMessageOnce(h)
			})
			require.Zero(t, objects())
			ddl, err := adminOf(t, db).GetDatabaseDdl(t.Context(), &databasepb.GetDatabaseDdlRequest{Database: db.Name})
			require.NoError(t, err)
			require.Empty(t, ddl.Statements)
		})
	}
}

func adminOf(t *testing.T, db *emulatortest.DB) *database.DatabaseAdminClient {
	t.Helper()
	admin, err := database.NewDatabaseAdminClient(t.Context(), db.ClientOptions()...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = admin.Close() })
	return admin
}
