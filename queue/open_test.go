package queue_test

import (
	"strings"
	"testing"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

func TestOpenFindsTheDefinition(t *testing.T) {
	t.Parallel()
	for _, definition := range []schema.Queue{
		tasks,
		{
			Name: "Mails",
			KeyColumns: []schema.Column{
				{Name: "Num", Type: schema.Int64()},
				{Name: "Region", Type: schema.String(8), NotNull: true},
				{Name: "At", Type: schema.Timestamp()},
			},
			PrimaryKey: []schema.KeyPart{{Column: "Region"}, {Column: "At", Desc: true}, {Column: "Num"}},
			Payload:    schema.String(100),
		},
		{
			Name:       "Orders",
			KeyColumns: []schema.Column{{Name: "Order", Type: schema.Numeric(), NotNull: true}},
			Payload:    schema.JSON(),
		},
	} {
		t.Run(definition.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, definition)
			for _, name := range []string{definition.Name, strings.ToLower(definition.Name), strings.ToUpper(definition.Name)} {
				q, err := queue.Open(t.Context(), w.client, name)
				require.NoError(t, err)
				require.Equal(t, definition.Name, q.Name(), "as declared, whatever was asked for")
				found := q.Definition()
				require.Equal(t, definition.KeyParts(), found.KeyParts())
				for _, c := range definition.KeyColumns {
					there, ok := found.KeyColumn(c.Name)
					require.True(t, ok)
					require.Equal(t, c, there)
				}
				require.Equal(t, definition.Payload, found.Payload)
			}
		})
	}
}

// A queue that was opened by its name works as one that was made of its definition.
func TestOpenedQueueWorks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	q, err := queue.Open(t.Context(), w.client, "tasks")
	require.NoError(t, err)
	require.NoError(t, q.Send(t.Context(), []queue.Outgoing{{Key: spanner.Key{"m1"}, Payload: []byte("hello")}}))
	m := w.receive(1)[0]
	require.Equal(t, "hello", string(m.Payload))
	w.queue = q
	require.NoError(t, w.ack(m))
}

func TestOpenRefusesWhatIsNoQueue(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, tasks.DDL(), effectsTable,
		schema.DeadLetters{Queue: tasks}.Statements()[0],
		`CREATE QUEUE Sharded (Id INT64 NOT NULL, Shard INT64 NOT NULL AS (MOD(Id, 4)) STORED, Payload BYTES(MAX) NOT NULL) PRIMARY KEY (Shard, Id)`,
		`CREATE QUEUE Scored (Score FLOAT64 NOT NULL, Payload BYTES(MAX) NOT NULL) PRIMARY KEY (Score)`,
	)
	client := db.Client(t)
	for name, says := range map[string]string{
		"Nothing":          "no queue or table of that name",
		"":                 "no queue or table of that name",
		"Ta`sks":           "no queue or table of that name",
		"Effects":          "not a queue",
		"TasksDeadLetters": "not a queue but a table", // though it has a key, Payload and DeliverTime
		"Sharded":          "key column Shard is generated from (MOD(Id, 4))",
		"Scored":           "key column Score has type FLOAT64",
	} {
		_, err := queue.Open(t.Context(), client, name)
		require.ErrorContains(t, err, says, name)
		require.ErrorContains(t, err, "queue ", name)
	}
	_, err := queue.Open(t.Context(), nil, "Tasks")
	require.ErrorIs(t, err, queue.ErrInvalid)
}

// A role that may send and not receive can open the queue; a database that does not answer is no missing queue.
func TestOpenTellsRefusalsApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	h := w.fault(fault.Rule{SQL: "RENEWLEASE_", Nth: 1, Do: fault.Before(codes.PermissionDenied, "no EXECUTE")})
	_, err := queue.Open(t.Context(), w.client, "Tasks")
	require.NoError(t, err)
	require.Equal(t, 1, h.Applied())
	for _, sql := range []string{"INFORMATION_SCHEMA", "RENEWLEASE_"} {
		h := w.fault(fault.Rule{SQL: sql, Nth: 1, Do: fault.Before(codes.FailedPrecondition, "not now")})
		_, err = queue.Open(t.Context(), w.client, "Tasks")
		require.Equal(t, codes.FailedPrecondition, spanner.ErrCode(err))
		require.Equal(t, 1, h.Applied())
	}
}

func TestNewRefusesWhatItCouldNotServe(t *testing.T) {
	t.Parallel()
	client := new(spanner.Client)
	with := func(change func(*schema.Queue)) schema.Queue {
		q := tasks
		q.KeyColumns = append([]schema.Column(nil), tasks.KeyColumns...)
		change(&q)
		return q
	}
	for says, q := range map[string]schema.Queue{
		"queue Tasks: key column Id has type FLOAT64": with(func(q *schema.Queue) { q.KeyColumns[0].Type = schema.Float64() }),
		"key column Id has type FLOAT32":              with(func(q *schema.Queue) { q.KeyColumns[0].Type = schema.Float32() }),
		"key column Id is generated from (LOWER(X))":  with(func(q *schema.Queue) { q.KeyColumns[0].Generated = "LOWER(X)" }),
		"Payload":    with(func(q *schema.Queue) { q.Payload = schema.Int64() }),
		"KeyColumns": with(func(q *schema.Queue) { q.KeyColumns = nil }),
		"Name":       with(func(q *schema.Queue) { q.Name = "" }),
		"dot":        with(func(q *schema.Queue) { q.Name = "shop.Tasks" }),
	} {
		_, err := queue.New(client, q)
		require.ErrorIs(t, err, queue.ErrInvalid, says)
		require.ErrorContains(t, err, says)
	}
	_, err := queue.New(nil, tasks)
	require.ErrorIs(t, err, queue.ErrInvalid)
	_, err = queue.New(client, tasks, queue.LeaseLength(-1))
	require.ErrorIs(t, err, queue.ErrInvalid)
	require.ErrorContains(t, err, "LeaseLength is -1ns")
	var field *schema.FieldError
	_, err = queue.New(client, with(func(q *schema.Queue) { q.Name = "" }))
	require.ErrorAs(t, err, &field)
}
