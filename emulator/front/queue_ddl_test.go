package front_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
)

// What the emulator cannot keep is refused in words that say so.
func TestQueueThatTheEmulatorCannotKeep(t *testing.T) {
	t.Parallel()
	const uuid = "CREATE QUEUE U (Id UUID NOT NULL, Payload JSON NOT NULL) PRIMARY KEY (Id)"
	db := emulatortest.Database(t)
	err := updateDDL(t, db, uuid)
	require.Equal(t, codes.Unimplemented, spanner.ErrCode(err), "%v", err)
	require.ErrorContains(t, err, "type UUID")
	name := strings.Replace(db.Name, "/databases/test", "/databases/other", 1)
	err = db.Emulator().CreateDatabase(t.Context(), name, uuid)
	require.ErrorContains(t, err, "type UUID")
	require.Empty(t, describe(t, db))
}

// A statement that waited for its turn is judged by the schema that it finds then.
func TestAlterQueueBeforeAStatementThatWaits(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, taskQueue)
	s, addr := newFront(t, db.Emulator().BackendAddr(), front.Options{})
	c := clientAt(t, addr, db.Name)
	r := newRaw(t, addr, db.Name)
	alter := func(options string) error {
		_, err := r.admin().UpdateDatabaseDdl(r.ctx(), &databasepb.UpdateDatabaseDdlRequest{Database: db.Name, Statements: []string{"ALTER QUEUE Tasks SET OPTIONS (" + options + ")"}})
		return err
	}
	for name, late := range map[string]func() error{
		"statement": func() error {
			_, err := dml(context.Background(), c, "INSERT INTO Tasks (Id, Payload) VALUES (1, 'x')")
			return err
		},
		"batch": func() error {
			_, err := c.ReadWriteTransaction(context.Background(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
				_, err := tx.BatchUpdate(ctx, []spanner.Statement{spanner.NewStatement("INSERT INTO Tasks (Id, Payload) VALUES (1, 'x')")})
				return err
			})
			return err
		},
		"mutation": func() error {
			_, err := c.Apply(context.Background(), []*spanner.Mutation{spanner.Send("Tasks", spanner.Key{1}, "x")})
			return err
		},
	} {
		// Somebody has the turn; the change of the schema waits, and behind it the send.
		tx := r.begin(readWrite)
		_, err := r.sql(r.ctx(), byID(tx), "DELETE FROM Tasks WHERE Id = 7")
		require.NoError(t, err)
		altered, sent := make(chan error, 1), make(chan error, 1)
		go func() { altered <- alter("disable_send = true") }()
		eventually(t, "the schema change does not wait", func() bool { return s.Stats().Waiting == 1 })
		go func() { sent <- late() }()
		eventually(t, "the send does not wait", func() bool { return s.Stats().Waiting == 2 })
		require.NoError(t, r.rollback(r.ctx(), tx))
		require.NoError(t, <-altered)
		err = <-sent
		require.Equal(t, codes.FailedPrecondition, spanner.ErrCode(err), "%s: %v", name, err)
		require.NoError(t, alter("disable_send = false"))
	}
	require.Empty(t, values[int64](t, c, "SELECT Id FROM Tasks"))
}

// An instance of 200 processing units can have 20 queues, whichever of its databases they are in.
func TestNumberOfQueues(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t)
	r := newRaw(t, db.Endpoint(), db.Name)
	instances := instancepb.NewInstanceAdminClient(r.conn)
	small := strings.TrimSuffix(db.Name, "/databases/test") + "-small"
	_, err := instances.CreateInstance(r.ctx(), &instancepb.CreateInstanceRequest{
		Parent: "projects/emulatortest", InstanceId: small[strings.LastIndex(small, "/")+1:],
		Instance: &instancepb.Instance{Config: "projects/emulatortest/instanceConfigs/emulator-config", DisplayName: "small", ProcessingUnits: 200},
	})
	require.NoError(t, err)
	queues := func(from, to int) (statements []string) {
		for i := from; i < to; i++ {
			statements = append(statements, fmt.Sprintf("CREATE QUEUE Q%d (Id INT64, Payload JSON NOT NULL) PRIMARY KEY (Id)", i))
		}
		return statements
	}
	create := func(id string, statements []string) error {
		_, err := r.admin().CreateDatabase(r.ctx(), &databasepb.CreateDatabaseRequest{Parent: small, CreateStatement: "CREATE DATABASE " + id, ExtraStatements: statements})
		return err
	}
	update := func(id string, statements ...string) error {
		_, err := r.admin().UpdateDatabaseDdl(r.ctx(), &databasepb.UpdateDatabaseDdlRequest{Database: small + "/databases/" + id, Statements: statements})
		return err
	}
	require.NoError(t, create("one", queues(0, 15)))
	requireCode(t, codes.FailedPrecondition, create("two", queues(0, 6)))
	require.NoError(t, create("two", queues(0, 5)))
	for _, id := range []string{"one", "two"} {
		err := update(id, queues(20, 21)...)
		requireCode(t, codes.FailedPrecondition, err)
		require.ErrorContains(t, err, "has 20 queues")
	}
	require.NoError(t, update("one", append([]string{"DROP QUEUE Q0"}, queues(20, 21)...)...))
	require.NoError(t, update("two", "DROP QUEUE Q1"))
	require.NoError(t, update("one", queues(21, 22)...))
	_, err = r.admin().DropDatabase(r.ctx(), &databasepb.DropDatabaseRequest{Database: small + "/databases/two"})
	require.NoError(t, err)
	require.NoError(t, update("one", queues(22, 26)...))
	requireCode(t, codes.FailedPrecondition, update("one", queues(26, 27)...))
	_, err = r.admin().DropDatabase(r.ctx(), &databasepb.DropDatabaseRequest{Database: small + "/databases/one"})
	require.NoError(t, err)
	_, err = instances.DeleteInstance(r.ctx(), &instancepb.DeleteInstanceRequest{Name: small})
	require.NoError(t, err)
}
