package front_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/api/iterator"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front"
)

// The roles of the service's own example, and one that may do nothing.
var exampleRoles = []string{
	"CREATE ROLE queue_producer",
	"GRANT INSERT ON QUEUE Tasks TO ROLE queue_producer",
	"CREATE ROLE queue_consumer",
	"GRANT EXECUTE ON TABLE FUNCTION RECEIVE_Tasks TO ROLE queue_consumer",
	"GRANT EXECUTE ON TABLE FUNCTION RENEWLEASE_Tasks TO ROLE queue_consumer",
	"GRANT DELETE ON QUEUE Tasks TO ROLE queue_consumer",
	"CREATE ROLE queue_reader",
	"GRANT SELECT ON QUEUE Tasks TO ROLE queue_reader",
	"CREATE ROLE nobody",
	"CREATE ROLE everybody",
	"GRANT ROLE queue_producer, queue_consumer, queue_reader TO ROLE everybody",
}

func asRole(t testing.TB, addr, database, role string) *spanner.Client {
	t.Helper()
	c, err := spanner.NewClientWithConfig(t.Context(), database, spanner.ClientConfig{DisableNativeMetrics: true, DatabaseRole: role}, emulator.ClientOptions(addr)...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// operations are all that can be done with the queue Tasks, by the privilege that each needs.
var operations = map[string]map[string]func(ctx context.Context, c *spanner.Client) error{
	"INSERT": {
		"send by mutation": func(ctx context.Context, c *spanner.Client) error {
			_, err := c.Apply(ctx, []*spanner.Mutation{spanner.Send("Tasks", spanner.Key{7}, "x")})
			return err
		},
		"send by SQL": func(ctx context.Context, c *spanner.Client) error {
			_, err := dml(ctx, c, "INSERT INTO Tasks (Id, Payload) VALUES (8, 'x')")
			return err
		},
		"send by batch DML": func(ctx context.Context, c *spanner.Client) error {
			_, err := c.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
				_, err := tx.BatchUpdate(ctx, []spanner.Statement{spanner.NewStatement("INSERT INTO Tasks (Id, Payload) VALUES (9, 'x')")})
				return err
			})
			return err
		},
	},
	"DELETE": {
		"ack by mutation": func(ctx context.Context, c *spanner.Client) error {
			_, err := c.Apply(ctx, []*spanner.Mutation{spanner.Ack("Tasks", spanner.Key{7}, spanner.WithIgnoreNotFound(true))})
			return err
		},
		"delete by mutation": func(ctx context.Context, c *spanner.Client) error {
			_, err := c.Apply(ctx, []*spanner.Mutation{spanner.Delete("Tasks", spanner.Key{7})})
			return err
		},
		"ack by SQL": func(ctx context.Context, c *spanner.Client) error {
			_, err := dml(ctx, c, "DELETE FROM Tasks WHERE Id = 8 AND DeliverTime > '2000-01-01T00:00:00Z' ASSERT_ROWS_MODIFIED 0")
			return err
		},
		"ack by partitioned DML": func(ctx context.Context, c *spanner.Client) error {
			_, err := c.PartitionedUpdate(ctx, spanner.NewStatement("DELETE FROM Tasks WHERE Id = 8"))
			return err
		},
	},
	"SELECT": {
		"query": func(ctx context.Context, c *spanner.Client) error {
			return drain(c.Single().Query(ctx, spanner.NewStatement("SELECT * FROM Tasks")))
		},
		"query in a transaction": func(ctx context.Context, c *spanner.Client) error {
			_, err := c.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
				return drain(tx.Query(ctx, spanner.NewStatement("SELECT 1 FROM Effects JOIN tasks t ON TRUE")))
			})
			return err
		},
		"read": func(ctx context.Context, c *spanner.Client) error {
			return drain(c.Single().Read(ctx, "Tasks", spanner.AllKeys(), []string{"Id"}))
		},
		"as the source of DML": func(ctx context.Context, c *spanner.Client) error {
			_, err := dml(ctx, c, "INSERT INTO Effects (Id, N) SELECT Id, 1 FROM Tasks WHERE FALSE")
			return err
		},
		"partitions": func(ctx context.Context, c *spanner.Client) error {
			tx, err := c.BatchReadOnlyTransaction(ctx, spanner.StrongRead())
			if err != nil {
				return err
			}
			defer tx.Close()
			if _, err := tx.PartitionQuery(ctx, spanner.NewStatement("SELECT Id FROM Tasks"), spanner.PartitionOptions{}); err != nil {
				return err
			}
			_, err = tx.PartitionRead(ctx, "Tasks", spanner.AllKeys(), []string{"Id"}, spanner.PartitionOptions{})
			return err
		},
		"partitioned read": func(ctx context.Context, c *spanner.Client) error {
			tx, err := c.BatchReadOnlyTransaction(ctx, spanner.StrongRead())
			if err != nil {
				return err
			}
			defer tx.Close()
			_, err = tx.PartitionRead(ctx, "Tasks", spanner.AllKeys(), []string{"Id"}, spanner.PartitionOptions{})
			return err
		},
	},
	"EXECUTE": {
		"receive": func(ctx context.Context, c *spanner.Client) error {
			return drain(c.Single().Query(ctx, spanner.NewStatement("SELECT Id FROM RECEIVE_Tasks(max_duration => '1ms')")))
		},
		"renew": func(ctx context.Context, c *spanner.Client) error {
			return drain(c.Single().Query(ctx, spanner.NewStatement("SELECT * FROM RENEWLEASE_Tasks(lease_tokens => ['x'])")))
		},
	},
}

func drain(it *spanner.RowIterator) error { return it.Do(func(*spanner.Row) error { return nil }) }

// Every role may do what is granted to it, and nothing else with queues; with tables it may do everything.
func TestRoles(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, append([]string{taskQueue, effectsTable}, exampleRoles...)...)
	_, another := newFront(t, db.Emulator().BackendAddr(), front.Options{})
	for role, granted := range map[string][]string{
		"queue_producer": {"INSERT"},
		"queue_consumer": {"DELETE", "EXECUTE"},
		"queue_reader":   {"SELECT"},
		"nobody":         nil,
		"everybody":      {"INSERT", "DELETE", "SELECT", "EXECUTE"},
		"":               {"INSERT", "DELETE", "SELECT", "EXECUTE"},
	} {
		for where, addr := range map[string]string{"this front": db.Endpoint(), "a new front": another} {
			c := asRole(t, addr, db.Name, role)
			for privilege, all := range operations {
				for name, operation := range all {
					_, err := dml(t.Context(), db.Client(t), "DELETE FROM Tasks WHERE TRUE")
					require.NoError(t, err)
					want := codes.PermissionDenied
					for _, g := range granted {
						if g == privilege {
							want = codes.OK
						}
					}
					err = operation(t.Context(), c)
					require.Equal(t, want, spanner.ErrCode(err), "%s: %s, %s: %v", where, role, name, err)
				}
			}
			_, err := dml(t.Context(), c, "INSERT OR UPDATE INTO Effects (Id, N) VALUES (1, 1)", "DELETE FROM Effects WHERE TRUE")
			require.NoError(t, err, "tables are not enforced")
		}
	}
	err := operations["EXECUTE"]["receive"](t.Context(), asRole(t, db.Endpoint(), db.Name, "queue_reader"))
	require.ErrorContains(t, err, "Role queue_reader does not have required privileges on table function RECEIVE_Tasks")
	err = operations["SELECT"]["query"](t.Context(), asRole(t, db.Endpoint(), db.Name, "queue_consumer"))
	require.ErrorContains(t, err, "Role queue_consumer does not have required privileges on queue Tasks")
}

// A role is a part of the schema: shown, changed at once, in order with everything else, and dropped last.
func TestRolesAreDeclared(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, taskQueue, effectsTable)
	require.NoError(t, updateDDL(t, db, "CREATE ROLE a", "GRANT SELECT, INSERT ON QUEUE Tasks TO ROLE a",
		"GRANT SELECT(N) ON TABLE Effects TO ROLE a", "CREATE QUEUE More (Id INT64, Payload JSON NOT NULL) PRIMARY KEY (Id)", "GRANT DELETE ON QUEUE More TO ROLE a"))
	shown := describe(t, db)
	require.Len(t, shown, 8)
	require.Equal(t, []string{
		"CREATE ROLE a",
		"GRANT SELECT ON QUEUE Tasks TO ROLE a",
		"GRANT INSERT ON QUEUE Tasks TO ROLE a",
		"GRANT SELECT(N) ON TABLE Effects TO ROLE a",
		"GRANT DELETE ON QUEUE More TO ROLE a",
	}, shown[3:])
	require.Equal(t, shown[3:], describe(t, emulatortest.Database(t, shown...))[3:], "what is shown declares the same")

	var names []string
	roles := databaseAdmin(t, db).ListDatabaseRoles(t.Context(), &databasepb.ListDatabaseRolesRequest{Parent: db.Name})
	for {
		role, err := roles.Next()
		if errors.Is(err, iterator.Done) {
			break
		}
		require.NoError(t, err)
		names = append(names, strings.TrimPrefix(role.GetName(), db.Name+"/databaseRoles/"))
	}
	require.Equal(t, []string{"public", "spanner_info_reader", "spanner_sys_reader", "a"}, names)

	c := asRole(t, db.Endpoint(), db.Name, "a")
	send := operations["INSERT"]["send by mutation"]
	require.NoError(t, send(t.Context(), c))
	require.NoError(t, updateDDL(t, db, "REVOKE INSERT ON QUEUE Tasks FROM ROLE a"))
	require.Equal(t, codes.PermissionDenied, spanner.ErrCode(send(t.Context(), c)), "at once, for sessions that there are")

	for sql, want := range map[string]codes.Code{
		"DROP QUEUE Tasks": codes.FailedPrecondition,
		"DROP ROLE a":      codes.FailedPrecondition,
		"GRANT SELECT ON QUEUE Nothing TO ROLE a":                   codes.NotFound,
		"GRANT EXECUTE ON TABLE FUNCTION RECEIVE_Nothing TO ROLE a": codes.NotFound,
		"GRANT SELECT ON TABLE Tasks TO ROLE a":                     codes.InvalidArgument,
		"GRANT SELECT ON QUEUE Tasks TO ROLE nobody":                codes.NotFound,
		"GRANT SELECT QUEUE Tasks TO ROLE a":                        codes.InvalidArgument,
		"DROP TABLE spanqueue_roles":                                codes.InvalidArgument,
	} {
		err := updateDDL(t, db, "CREATE ROLE b", sql)
		require.Equal(t, want, spanner.ErrCode(err), "%s: %v", sql, err)
	}
	require.NotContains(t, describe(t, db), "CREATE ROLE b", "a batch that fails leaves nothing")
	require.NoError(t, updateDDL(t, db, "REVOKE SELECT ON QUEUE Tasks FROM ROLE a", "REVOKE DELETE ON QUEUE More FROM ROLE a",
		"REVOKE SELECT(N) ON TABLE Effects FROM ROLE a", "DROP ROLE a", "DROP QUEUE Tasks"))
	require.Len(t, describe(t, db), 2)
}

func TestSessionsOfRolesThatDoNotExist(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, "CREATE ROLE reader")
	r := newRaw(t, db.Endpoint(), db.Name)
	for role, want := range map[string]codes.Code{"": codes.OK, "READER": codes.OK, "public": codes.OK, "spanner_sys_reader": codes.OK, "nobody": codes.PermissionDenied} {
		_, err := r.CreateSession(r.ctx(), &spannerpb.CreateSessionRequest{Database: r.database, Session: &spannerpb.Session{CreatorRole: role}})
		requireCode(t, want, err)
		_, err = r.BatchCreateSessions(r.ctx(), &spannerpb.BatchCreateSessionsRequest{Database: r.database, SessionCount: 2, SessionTemplate: &spannerpb.Session{CreatorRole: role}})
		requireCode(t, want, err)
	}
}
