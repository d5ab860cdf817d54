package front_test

import (
	"context"
	"strings"
	"testing"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
)

// F33: every valid form of the DDL gives the same queue.
func TestF33QueueDDL(t *testing.T) {
	t.Parallel()
	var canonical string
	for name, ddl := range map[string]string{
		"plain":             "CREATE QUEUE Tasks (Id INT64 NOT NULL, Payload STRING(MAX) NOT NULL) PRIMARY KEY (Id), OPTIONS (receive_mode = 'PULL')",
		"trailing comma":    "CREATE QUEUE Tasks (Id INT64 NOT NULL, Payload STRING(MAX) NOT NULL,) PRIMARY KEY (Id), OPTIONS (receive_mode = 'PULL')",
		"lower case":        "create queue Tasks (Id int64 not null, Payload string(max) not null) primary key (Id), options (receive_mode = 'PULL')",
		"mixed case":        "CREATE Queue Tasks (Id Int64 Not Null, Payload String(Max) Not Null) Primary Key (Id), Options (RECEIVE_MODE = 'PULL')",
		"back-quotes":       "CREATE QUEUE `Tasks` (`Id` INT64 NOT NULL, `Payload` STRING(MAX) NOT NULL) PRIMARY KEY (`Id`), OPTIONS (receive_mode = 'PULL')",
		"double quotes":     `CREATE QUEUE Tasks (Id INT64 NOT NULL, Payload STRING(MAX) NOT NULL) PRIMARY KEY (Id), OPTIONS (receive_mode="PULL")`,
		"if not exists":     "CREATE QUEUE IF NOT EXISTS Tasks (Id INT64 NOT NULL, Payload STRING(MAX) NOT NULL) PRIMARY KEY (Id), OPTIONS (receive_mode = 'PULL')",
		"a leading comment": "-- the 'tasks' queue\n/* CREATE TABLE */ CREATE QUEUE Tasks (\n  Id INT64 NOT NULL, -- key\n  Payload STRING(MAX) NOT NULL # body\n) PRIMARY KEY (Id), OPTIONS (receive_mode = 'PULL')",
	} {
		t.Run(name, func(t *testing.T) {
			db := emulatortest.Database(t)
			require.NoError(t, updateDDL(t, db, ddl))
			described := describe(t, db)
			require.Len(t, described, 1)
			if canonical == "" {
				canonical = described[0]
			}
			require.Equal(t, canonical, described[0])
			require.True(t, strings.HasPrefix(described[0], "CREATE QUEUE Tasks ("), described[0])

			// What is shown creates it again, and it works.
			c := emulatortest.Database(t, described...).Client(t)
			apply(t, c, spanner.Send("Tasks", spanner.Key{1}, "x"))
			require.Equal(t, "x", receiveTasks(t, c, "SELECT * FROM RECEIVE_Tasks(max_duration => '1m')").next(t).Payload)
		})
	}
}

func TestF33MixedBatch(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t,
		"CREATE TABLE Users (UserId INT64 NOT NULL, Name STRING(MAX)) PRIMARY KEY (UserId)",
		"CREATE QUEUE UserTasks (UserId INT64 NOT NULL, MessageId STRING(36) NOT NULL, Payload BYTES(MAX) NOT NULL) PRIMARY KEY (UserId, MessageId), INTERLEAVE IN PARENT Users ON DELETE CASCADE",
		"CREATE TABLE After (Id INT64 NOT NULL) PRIMARY KEY (Id)")
	c := db.Client(t)
	apply(t, c, spanner.Insert("Users", []string{"UserId"}, []any{7}), spanner.Send("UserTasks", spanner.Key{7, "m"}, []byte{0, 255}))
	_, err := c.Apply(t.Context(), []*spanner.Mutation{spanner.Send("UserTasks", spanner.Key{8, "m"}, []byte{})})
	require.Equal(t, codes.NotFound, spanner.ErrCode(err), "there is no parent")
	apply(t, c, spanner.Delete("Users", spanner.Key{7}))
	require.Equal(t, []int64{0}, values[int64](t, c, "SELECT COUNT(*) FROM UserTasks"))

	// A failing statement in the batch.
	err = updateDDL(t, db, taskQueue, "CREATE TABLE After (Id INT64 NOT NULL) PRIMARY KEY (Id)", "CREATE QUEUE Never (Id INT64, Payload JSON NOT NULL) PRIMARY KEY (Id)")
	require.Error(t, err)
	names := func() (names []string) {
		for _, sql := range describe(t, db) {
			names = append(names, strings.Trim(strings.Fields(sql)[2], "("))
		}
		return names
	}
	require.ElementsMatch(t, []string{"Users", "UserTasks", "After"}, names(), "a batch that fails leaves nothing of a queue behind")
	require.NoError(t, updateDDL(t, db, "DROP TABLE After", "drop queue if exists Nothing", "Drop Queue `UserTasks`", "DROP TABLE Users", "CREATE QUEUE IF NOT EXISTS "+strings.TrimPrefix(taskQueue, "CREATE QUEUE ")))
	require.Equal(t, []string{"Tasks"}, names())
	require.NoError(t, updateDDL(t, db, "CREATE QUEUE IF NOT EXISTS "+strings.TrimPrefix(taskQueue, "CREATE QUEUE ")), "there is nothing to do")
	require.Equal(t, codes.NotFound, spanner.ErrCode(updateDDL(t, db, "DROP QUEUE Nothing")))
	require.Error(t, updateDDL(t, db, taskQueue))
}

func TestF33QueueDDLThatIsRefused(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t)
	for ddl, reason := range map[string]string{
		"CREATE QUEUE Q (Id INT64) PRIMARY KEY (Id)":                                                    "Payload",
		"CREATE QUEUE Q (Id INT64, Payload STRING(MAX)) PRIMARY KEY (Id)":                               "NOT NULL",
		"CREATE QUEUE Q (Id INT64, Payload FLOAT64 NOT NULL) PRIMARY KEY (Id)":                          "Payload",
		"CREATE QUEUE Q (Id INT64, More INT64, Payload JSON NOT NULL) PRIMARY KEY (Id)":                 "More",
		"CREATE QUEUE Q (Id INT64, DeliverTime TIMESTAMP, Payload JSON NOT NULL) PRIMARY KEY (Id)":      "DeliverTime",
		"CREATE QUEUE s.Q (Id INT64, Payload JSON NOT NULL) PRIMARY KEY (Id)":                           "named schema",
		"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL)":                                              "PRIMARY",
		"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL) PRIMARY KEY (Id), OPTIONS (no_such_option=1)": "no_such_option",
	} {
		err := updateDDL(t, db, ddl)
		require.Equal(t, codes.InvalidArgument, spanner.ErrCode(err), "%s: %v", ddl, err)
		require.ErrorContains(t, err, reason)
	}
	require.Empty(t, describe(t, db))
}

// F33: the asserted delete, however it is written, by DML and by batch DML.
func TestF33AckStatements(t *testing.T) {
	t.Parallel()
	c := emulatortest.Database(t, taskQueue).Client(t)
	one := map[string]any{"id": 1}
	for name, st := range map[string]spanner.Statement{
		"plain":              {SQL: "DELETE FROM Tasks WHERE Id = 1 ASSERT_ROWS_MODIFIED 1"},
		"lower case":         {SQL: "delete from tasks where id = 1 assert_rows_modified 1"},
		"without FROM":       {SQL: "DELETE `Tasks` WHERE Id = 1 ASSERT_ROWS_MODIFIED 1"},
		"lines and comments": {SQL: "-- UPDATE Tasks\nDELETE\nFROM Tasks /* RECEIVE_Tasks() */\nWHERE Id = 1 # x\nASSERT_ROWS_MODIFIED\n1\n"},
		"semicolon":          {SQL: "DELETE FROM Tasks WHERE Id = 1 ASSERT_ROWS_MODIFIED 1 ; "},
		"named parameter":    {SQL: "DELETE FROM Tasks WHERE Id = @id ASSERT_ROWS_MODIFIED 1", Params: one},
		"words in strings":   {SQL: "DELETE FROM Tasks WHERE Id = @id AND Payload != 'SELECT * FROM RECEIVE_Tasks()' ASSERT_ROWS_MODIFIED 1", Params: one},
	} {
		for _, batch := range []bool{false, true} {
			ack := func() error {
				_, err := c.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
					if batch {
						_, err := tx.BatchUpdate(ctx, []spanner.Statement{spanner.NewStatement("DELETE FROM Tasks WHERE Id = 0"), st})
						return err
					}
					_, err := tx.Update(ctx, st)
					return err
				})
				return err
			}
			require.Equal(t, codes.OutOfRange, spanner.ErrCode(ack()), "%s, batch %t: on no row", name, batch)
			apply(t, c, spanner.Send("Tasks", spanner.Key{1}, "x"))
			require.NoError(t, ack(), "%s, batch %t: on one row", name, batch)
			require.Equal(t, codes.OutOfRange, spanner.ErrCode(ack()), "%s, batch %t: again", name, batch)
		}
	}
}

// F33: words in strings and comments, and names that only look alike, change nothing.
func TestF33WordsThatMeanNothing(t *testing.T) {
	t.Parallel()
	c := emulatortest.Database(t, taskQueue, "CREATE TABLE RECEIVE_Notes (Id INT64 NOT NULL, UPDATE_Tasks STRING(MAX)) PRIMARY KEY (Id)").Client(t)
	_, err := dml(t.Context(), c,
		"INSERT INTO RECEIVE_Notes (Id, UPDATE_Tasks) VALUES (1, 'SELECT * FROM RECEIVE_Tasks()')",
		"UPDATE RECEIVE_Notes SET UPDATE_Tasks = 'UPDATE Tasks SET x' WHERE Id = 1 -- UPDATE Tasks",
		"INSERT INTO Tasks (Id, Payload) VALUES (1, 'DELETE FROM Tasks; UPDATE Tasks; CREATE QUEUE x')")
	require.NoError(t, err)
	require.Equal(t, []string{"RECEIVE_Tasks("}, values[string](t, c, "/* RECEIVE_Tasks() */ SELECT 'RECEIVE_Tasks(' FROM RECEIVE_Notes"))
	require.Equal(t, []string{"DELETE FROM Tasks; UPDATE Tasks; CREATE QUEUE x"}, values[string](t, c, "SELECT Payload FROM Tasks"))
	err = c.Single().Query(t.Context(), spanner.NewStatement("SELECT * FROM RECEIVE_Nothing(max_duration => '1s')")).Do(func(*spanner.Row) error { return nil })
	require.Equal(t, codes.InvalidArgument, spanner.ErrCode(err))
}

// F33: every form of the receive statement.
func TestF33ReceiveStatements(t *testing.T) {
	t.Parallel()
	c := emulatortest.Database(t, taskQueue).Client(t)
	params := map[string]any{"duration": "1m", "size": 5, "least": 0}
	for _, sql := range []string{
		"SELECT * FROM RECEIVE_Tasks()",
		"select * from receive_tasks(MAX_DURATION => '1m', Max_Batch_Size => 1, priority => NULL);",
		"SELECT Id, Payload, SpannerLeaseToken FROM `RECEIVE_Tasks`(max_duration => @duration, max_batch_size => @size) WHERE Id > @least",
		"SELECT t.Id, t.Payload AS Payload, t.SpannerLeaseToken FROM RECEIVE_Tasks(max_duration => '1m') AS t WHERE t.Payload LIKE 'x%' -- c",
		"SELECT t.* EXCEPT (DeliverTime) FROM RECEIVE_Tasks(max_duration=>'1m') t",
		"@{USE_ADDITIONAL_PARALLELISM=FALSE}\nSELECT\n*\nFROM\nRECEIVE_Tasks ( max_duration => \"1m\" ) /* ; */ ;",
		"SELECT Id + 0 AS Id, CONCAT(Payload, '') AS Payload, SpannerLeaseToken FROM RECEIVE_Tasks(max_duration => '1m')",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		apply(t, c, spanner.Send("Tasks", spanner.Key{1}, "xyz"))
		it := c.Single().Query(ctx, spanner.Statement{SQL: sql, Params: params})
		row, err := it.Next()
		require.NoError(t, err, sql)
		var m task
		require.NoError(t, row.ToStructLenient(&m), sql)
		require.EqualValues(t, 1, m.ID, sql)
		require.Equal(t, "xyz", m.Payload, sql)
		require.NotEmpty(t, m.LeaseToken, sql)
		cancel()
		it.Stop()
		apply(t, c, spanner.Ack("Tasks", spanner.Key{1}))
	}
}

// A database of the PostgreSQL dialect has no queues, and works.
func TestQueuePostgreSQLDialect(t *testing.T) {
	t.Parallel()
	other := emulatortest.Database(t)
	admin := databaseAdmin(t, other)
	instance := strings.TrimSuffix(other.Name, "/databases/test")
	op, err := admin.CreateDatabase(t.Context(), &databasepb.CreateDatabaseRequest{
		Parent: instance, CreateStatement: `CREATE DATABASE "postgres"`, DatabaseDialect: databasepb.DatabaseDialect_POSTGRESQL,
	})
	require.NoError(t, err)
	_, err = op.Wait(t.Context())
	require.NoError(t, err)
	name := instance + "/databases/postgres"
	c, err := spanner.NewClientWithConfig(t.Context(), name, spanner.ClientConfig{DisableNativeMetrics: true}, other.ClientOptions()...)
	require.NoError(t, err)
	defer c.Close()
	require.Equal(t, []int64{1}, values[int64](t, c, "SELECT 1"))
	for name, err := range map[string]error{
		"Send": func() error {
			_, err := c.Apply(t.Context(), []*spanner.Mutation{spanner.Send("tasks", spanner.Key{1}, "x")})
			return err
		}(),
		"Ack in a transaction": func() error {
			_, err := c.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
				return tx.BufferWrite([]*spanner.Mutation{spanner.Ack("tasks", spanner.Key{1})})
			})
			return err
		}(),
		"receive": drain(c.Single().Query(t.Context(), spanner.NewStatement("SELECT * FROM spanner.receive_tasks(max_batch_size=>NULL, priority=>NULL, max_duration=>'20m')"))),
		"quoted":  drain(c.Single().Query(t.Context(), spanner.NewStatement(`SELECT * FROM "spanner"."receive_tasks"(NULL, NULL, '20m')`))),
		"renew":   drain(c.Single().Query(t.Context(), spanner.NewStatement("SELECT * FROM Spanner . renewlease_tasks(lease_tokens => ARRAY['t1'])"))),
	} {
		require.Equal(t, codes.Unimplemented, spanner.ErrCode(err), "%s: %v", name, err)
		require.ErrorContains(t, err, "PostgreSQL", name)
	}
	require.Equal(t, codes.InvalidArgument, spanner.ErrCode(drain(c.Single().Query(t.Context(), spanner.NewStatement("SELECT nope")))))
	err = drain(c.Single().Query(t.Context(), spanner.NewStatement("SELECT nope, 'spanner.receive_tasks(' -- spanner.receive_tasks(")))
	require.Equal(t, codes.InvalidArgument, spanner.ErrCode(err), "words in strings and comments mean nothing: %v", err)
	for _, sql := range []string{
		"CREATE QUEUE tasks (id bigint NOT NULL, payload bytea NOT NULL, PRIMARY KEY (id))",
		"-- a comment\ncreate /* */ Queue if not exists \"tasks\" (id bigint NOT NULL, payload jsonb NOT NULL, PRIMARY KEY (id)) INTERLEAVE IN PARENT users ON DELETE CASCADE",
		"ALTER QUEUE tasks SET OPTIONS (disable_send = true)", "DROP QUEUE tasks", "drop queue if exists tasks",
		"GRANT INSERT, DELETE ON QUEUE tasks TO worker", "/* a comment */ revoke select on queue tasks from worker",
		"GRANT EXECUTE ON FUNCTION spanner.receive_tasks, spanner.renewlease_tasks TO worker",
	} {
		op, err := admin.UpdateDatabaseDdl(t.Context(), &databasepb.UpdateDatabaseDdlRequest{Database: name, Statements: []string{"CREATE TABLE never (id bigint PRIMARY KEY)", sql}})
		require.Equal(t, codes.Unimplemented, spanner.ErrCode(err), "%s: %v %v", sql, op, err)
	}
	// What is not about queues is the emulator's.
	for _, sql := range []string{"GRANT SELECT ON TABLE queue TO worker", "CREATE TABLE queue (id bigint PRIMARY KEY) -- grant on queue", "CREATE ROLE worker"} {
		_, err := admin.UpdateDatabaseDdl(t.Context(), &databasepb.UpdateDatabaseDdlRequest{Database: name, Statements: []string{sql, "CREATE TABLE never again"}})
		require.Error(t, err, sql)
		require.NotContains(t, err.Error(), "This front", sql)
	}
	require.Empty(t, values[string](t, c, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"))
}
