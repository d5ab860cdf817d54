package schema_test

import (
	"testing"

	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/schema"
)

// orders is a queue with a clause of every kind that the emulator can hold.
func orders() schema.Queue {
	return schema.Queue{
		Name: "Orders",
		KeyColumns: []schema.Column{
			{Name: "UserId", Type: schema.Int64(), NotNull: true},
			{Name: "Shard", Type: schema.Int64(), Generated: "MOD(FARM_FINGERPRINT(OrderId), 8)", Hidden: true},
			{Name: "OrderId", Type: schema.String(36)},
			{Name: "SentAt", Type: schema.Timestamp(), NotNull: true, AllowCommitTimestamp: true},
		},
		Payload: schema.JSON(),
		PrimaryKey: []schema.KeyPart{
			{Column: "UserId"}, {Column: "Shard"}, {Column: "SentAt", Desc: true}, {Column: "OrderId"},
		},
		Interleave:  schema.Interleave{Table: "Users", InParent: true, OnDelete: schema.Cascade},
		RowDeletion: schema.RowDeletion{Column: schema.DeliverTimeColumn, Days: 30},
		Options:     schema.QueueOptions{ReceiveMode: schema.ReceiveModePull},
	}
}

func withQueue(q schema.Queue) []schema.Element {
	return []schema.Element{q, schema.DeadLetters{Queue: q}, schema.Attempts{Queue: q}, users}
}

func TestApplyMakesAQueueBesideItsTables(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t)
	client, sent := admin(t, db.Endpoint())
	res, err := schema.Apply(t.Context(), client, db.Name, withQueue(orders())...)
	require.NoError(t, err)
	require.Equal(t, []string{"Users", "Orders", "OrdersDeadLetters", "OrdersAttempts"}, res.Created, "the parent comes first")

	res, err = schema.Apply(t.Context(), client, db.Name, withQueue(orders())...)
	require.NoError(t, err)
	require.Equal(t, []string{"Users", "Orders", "OrdersDeadLetters", "OrdersAttempts"}, res.Present)
	require.EqualValues(t, 1, sent.Load(), "the second time nothing may be sent")

	ddl, err := client.GetDatabaseDdl(t.Context(), &databasepb.GetDatabaseDdlRequest{Database: db.Name})
	require.NoError(t, err)
	var queues []schema.Queue
	for _, sql := range ddl.GetStatements() {
		st, err := schema.ParseStatement(sql)
		require.NoError(t, err)
		if create, ok := st.(*schema.CreateQueue); ok {
			queues = append(queues, create.Queue)
		}
	}
	require.Equal(t, []schema.Queue{orders()}, queues, "the database shows the queue that was asked for")
}

func TestApplyOfAQueueFromManyProcessesAtOnce(t *testing.T) {
	t.Parallel()
	applyAtOnce(t, emulatortest.Database(t), withQueue(orders())...)
}

func TestApplyReportsAQueueOfAnotherShape(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t,
		"create queue orders (UserId int64 not null, `OrderId` string(36), Payload bytes(max) not null,) primary key (UserId, OrderId)")
	client, sent := admin(t, db.Endpoint())
	_, err := schema.Apply(t.Context(), client, db.Name, withQueue(orders())...)
	require.ErrorIs(t, err, schema.ErrShape)
	var shape *schema.ShapeError
	require.ErrorAs(t, err, &shape)
	require.Equal(t, "QUEUE", shape.Kind)
	require.Equal(t, "Orders", shape.Name)
	require.Contains(t, shape.Differences, "column payload: want JSON NOT NULL, found BYTES(MAX) NOT NULL")
	require.Contains(t, shape.Differences, "primary key: want (userid, shard, sentat DESC, orderid), found (userid, orderid)")
	require.Zero(t, sent.Load(), "nothing may be created beside it")

	// A table in the queue's place is another shape too.
	db = emulatortest.Database(t, "CREATE TABLE Orders (Id INT64) PRIMARY KEY (Id)")
	_, err = schema.Apply(t.Context(), client, db.Name, orders(), users)
	require.ErrorIs(t, err, schema.ErrShape)
	require.ErrorContains(t, err, "want a QUEUE, found a TABLE")
}

// A queue that was written by hand, in whatever layout, is the same queue.
func TestApplyTakesAQueueWrittenByHand(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, `-- the reminders
		create Queue if not exists reminders (
			userid int64 not null, -- who
			kind string(20),
			payload bytes(max) not null,
		) primary key (userid asc, kind), options (receive_mode = "PULL")`)
	client, sent := admin(t, db.Endpoint())
	res, err := schema.Apply(t.Context(), client, db.Name, nullable())
	require.NoError(t, err)
	require.Equal(t, schema.Result{Present: []string{"Reminders"}}, res)
	require.Zero(t, sent.Load())
}
