package emulatortest_test

import (
	"net"
	"sync/atomic"
	"testing"

	databaseadmin "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	instanceadmin "cloud.google.com/go/spanner/admin/instance/apiv1"
	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"
	"github.com/stretchr/testify/require"
	"google.golang.org/api/iterator"

	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
)

// elsewhere listens where no emulator is, and counts those who come.
func elsewhere(t *testing.T) (addr string, visitors *atomic.Int64) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	visitors = new(atomic.Int64)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := lis.Accept()
			if err != nil {
				return
			}
			visitors.Add(1)
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		lis.Close()
		<-ended
	})
	return lis.Addr().String(), visitors
}

// SPANNER_EMULATOR_HOST makes Google's clients add an endpoint of their own, before the options that they are given:
// the last one holds. It must lead neither the emulator's start nor a client away.
func TestEnvironmentIsNotRead(t *testing.T) {
	addr, visitors := elsewhere(t)
	t.Setenv("SPANNER_EMULATOR_HOST", addr)
	t.Setenv("SPANNER_EMULATOR_BINARY", "/nowhere/emulator_main")

	e := emulatortest.New(t, emulator.Options{})
	db := e.Database(t, accountTable)
	require.NoError(t, insert(t.Context(), db.Client(t), 1))
	require.EqualValues(t, 1, count(t, db.Bare(t), "Account"))

	databases, err := databaseadmin.NewDatabaseAdminClient(t.Context(), db.ClientOptions()...)
	require.NoError(t, err)
	defer databases.Close()
	got, err := databases.GetDatabaseDdl(t.Context(), &databasepb.GetDatabaseDdlRequest{Database: db.Name})
	require.NoError(t, err)
	require.Len(t, got.GetStatements(), 1)

	instances, err := instanceadmin.NewInstanceAdminClient(t.Context(), db.ClientOptions()...)
	require.NoError(t, err)
	defer instances.Close()
	_, err = instances.ListInstanceConfigs(t.Context(), &instancepb.ListInstanceConfigsRequest{Parent: "projects/p"}).Next()
	require.NotErrorIs(t, err, iterator.Done)
	require.NoError(t, err)

	require.Zero(t, visitors.Load(), "somebody went where SPANNER_EMULATOR_HOST points")
}

func TestEnvironmentNamesNothing(t *testing.T) {
	t.Setenv("SPANNER_EMULATOR_HOST", "") // as good as unset
	db := emulatortest.New(t, emulator.Options{}).Database(t, accountTable)
	require.NoError(t, insert(t.Context(), db.Client(t), 1))
}
