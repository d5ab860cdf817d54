package front_test

import (
	"context"
	"testing"

	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
)

var (
	sendTask = &spannerpb.Mutation{Operation: &spannerpb.Mutation_Send_{Send: &spannerpb.Mutation_Send{
		Queue: "Tasks", Key: &structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue("1")}}, Payload: structpb.NewStringValue("x"),
	}}}
	ackTask = &spannerpb.Mutation{Operation: &spannerpb.Mutation_Ack_{Ack: &spannerpb.Mutation_Ack{
		Queue: "Tasks", Key: &structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue("1")}},
	}}}
)

// Before an emulator that knows queues, whatever is about queues passes through as it is.
func TestEmulatorThatKnowsQueues(t *testing.T) {
	t.Parallel()
	fake, backend := startFake(t, true)
	_, addr := newFront(t, backend, front.Options{})
	const database = "projects/p/instances/i/databases/db"
	r := newRaw(t, addr, database)
	admin := r.admin()
	statements := []string{taskQueue, "CREATE ROLE a", "GRANT INSERT ON QUEUE Tasks TO ROLE a"}
	_, err := admin.CreateDatabase(r.ctx(), &databasepb.CreateDatabaseRequest{Parent: "projects/p/instances/i", CreateStatement: "CREATE DATABASE db", ExtraStatements: statements})
	require.NoError(t, err)
	more := []string{"ALTER QUEUE Tasks SET OPTIONS (disable_send = true)", "DROP QUEUE IF EXISTS Other"}
	_, err = admin.UpdateDatabaseDdl(r.ctx(), &databasepb.UpdateDatabaseDdlRequest{Database: database, Statements: more})
	require.NoError(t, err)
	ddl, err := admin.GetDatabaseDdl(r.ctx(), &databasepb.GetDatabaseDdlRequest{Database: database})
	require.NoError(t, err)
	require.Equal(t, append(statements, more...), ddl.GetStatements())
	_, err = r.CreateSession(r.ctx(), &spannerpb.CreateSessionRequest{Database: database, Session: &spannerpb.Session{CreatorRole: "a"}})
	require.NoError(t, err, "its roles are its own")

	fake.took()
	parts, err := all(r.ExecuteStreamingSql(r.ctx(), &spannerpb.ExecuteSqlRequest{Session: r.session, Sql: "SELECT Id FROM RECEIVE_Tasks(max_duration => '1m')"}))
	require.NoError(t, err)
	require.Equal(t, "native", string(parts[0].GetResumeToken()))
	_, err = r.sql(r.ctx(), nil, "SELECT * FROM RENEWLEASE_Tasks(lease_tokens => ['x'])")
	require.NoError(t, err)
	rs, err := r.sql(r.ctx(), begins(readWrite), "DELETE FROM Tasks WHERE Id = 1 ASSERT_ROWS_MODIFIED 1")
	require.NoError(t, err)
	_, err = r.sql(r.ctx(), byID(rs.GetMetadata().GetTransaction().GetId()), "UPDATE Tasks SET Payload = 'y' WHERE TRUE")
	require.NoError(t, err)
	_, err = r.commit(r.ctx(), rs.GetMetadata().GetTransaction().GetId(), ackTask, sendTask)
	require.NoError(t, err)
	_, err = r.apply(r.ctx(), sendTask)
	require.NoError(t, err)
	require.Equal(t, []string{
		"stream SELECT Id FROM RECEIVE_Tasks(max_duration => '1m')",
		"SELECT * FROM RENEWLEASE_Tasks(lease_tokens => ['x'])",
		"DELETE FROM Tasks WHERE Id = 1 ASSERT_ROWS_MODIFIED 1",
		"UPDATE Tasks SET Payload = 'y' WHERE TRUE",
		"ack Tasks", "send Tasks", "send Tasks",
	}, fake.took())
	require.Equal(t, 1, fake.probes, "it is asked once")

	// Turns and sessions are still the front's.
	var group errgroup.Group
	for range 8 {
		group.Go(func() error {
			tx := r.begin(readWrite)
			if _, err := r.sql(context.Background(), byID(tx), "DELETE FROM Tasks WHERE Id = 2"); err != nil {
				return err
			}
			_, err := r.commit(context.Background(), tx)
			return err
		})
	}
	require.NoError(t, group.Wait())
	require.Equal(t, 1, fake.most, "read-write transactions at once in the emulator")
}

// Before one that does not, the front keeps them; and as long as that cannot be found out, it says so.
func TestEmulatorThatKnowsNoQueues(t *testing.T) {
	t.Parallel()
	fake, backend := startFake(t, false)
	fake.brokenProbe = true
	_, addr := newFront(t, backend, front.Options{})
	const database = "projects/p/instances/i/databases/db"
	r := newRaw(t, addr, database)
	create := &databasepb.CreateDatabaseRequest{Parent: "projects/p/instances/i", CreateStatement: "CREATE DATABASE db", ExtraStatements: []string{taskQueue}}
	_, err := r.admin().CreateDatabase(r.ctx(), create)
	requireCode(t, codes.Unavailable, err)
	require.ErrorContains(t, err, "find out whether the emulator knows queues")
	_, err = r.apply(r.ctx(), sendTask)
	requireCode(t, codes.Unavailable, err)

	fake.mu.Lock()
	fake.brokenProbe = false
	fake.mu.Unlock()
	_, err = r.apply(r.ctx(), sendTask)
	requireCode(t, codes.NotFound, err)
	_, err = r.admin().CreateDatabase(r.ctx(), create)
	require.NoError(t, err)
	require.Contains(t, fake.databases[database][0], "CREATE TABLE Tasks")
	require.Equal(t, 3, fake.probes)
	require.Len(t, fake.databases, 1, "the probe's database is dropped")
	require.Empty(t, fake.took())
}

// The probe leaves nothing behind in the real one.
func TestProbeLeavesNothing(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t)
	_, addr := newFront(t, db.Emulator().BackendAddr(), front.Options{})
	r := newRaw(t, addr, db.Name)
	_, err := r.admin().UpdateDatabaseDdl(r.ctx(), &databasepb.UpdateDatabaseDdlRequest{Database: db.Name, Statements: []string{taskQueue}})
	require.NoError(t, err)
	instances := instancepb.NewInstanceAdminClient(r.conn)
	eventually(t, "a probe's instance is left", func() bool { // other tests' fronts may be probing
		list, err := instances.ListInstances(r.ctx(), &instancepb.ListInstancesRequest{Parent: "projects/spanqueue-probe"})
		require.NoError(t, err)
		return len(list.GetInstances()) == 0
	})
}
