package queues_test

import (
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues"
	"github.com/spanqueue/spanqueue/schema"
)

func (b *bench) described() []string {
	b.t.Helper()
	resp, err := b.admin.GetDatabaseDdl(b.t.Context(), &databasepb.GetDatabaseDdlRequest{Database: b.name})
	require.NoError(b.t, err)
	statements, err := b.queues.RestoreDDL(b.t.Context(), b.name, resp.GetStatements())
	require.NoError(b.t, err)
	return statements
}

func canonical(t testing.TB, ddl string) string {
	t.Helper()
	s, err := schema.ParseStatement(ddl)
	require.NoError(t, err)
	return s.(*schema.CreateQueue).Queue.DDL()
}

func TestDDLShowsWhatWasDeclared(t *testing.T) {
	t.Parallel()
	const child = `-- a comment
create Queue if not exists Child (
  Id INT64 NOT NULL,
  N INT64 NOT NULL,
  Payload STRING(MAX) NOT NULL,
) PRIMARY KEY (Id, N DESC), INTERLEAVE IN PARENT Plain ON DELETE CASCADE, ROW DELETION POLICY (OLDER_THAN(DeliverTime, INTERVAL 3 DAY)), OPTIONS (receive_mode = "PULL")`
	b := newBench(t, queues.Options{}, taskQueue, table, child, `CREATE INDEX ByV ON Plain (V)`)
	described := b.described()
	require.Len(t, described, 4)
	require.Contains(t, described, canonical(t, taskQueue))
	require.Contains(t, described, canonical(t, child))
	for _, d := range described {
		require.NotContains(t, d, "panqueue")
	}
	// The next batch sees the queues, and its order is kept: each statement needs the ones before it.
	b.ddl(`DROP QUEUE tasks`, taskQueue, `CREATE QUEUE IF NOT EXISTS Child (X INT64, Payload JSON NOT NULL) PRIMARY KEY (X)`,
		`DROP QUEUE IF EXISTS Nothing`, `DROP QUEUE Child`, `DROP INDEX ByV`, `DROP TABLE Plain`)
	require.Equal(t, []string{canonical(t, taskQueue)}, b.described())
	rewritten, err := b.queues.RewriteDDL(t.Context(), b.name, []string{`DROP QUEUE IF EXISTS Child`, "CREATE QUEUE IF NOT EXISTS Tasks (Id INT64, Payload BYTES(1) NOT NULL) PRIMARY KEY (Id)"})
	require.NoError(t, err)
	require.Empty(t, rewritten, "nothing is left to do")
}

func TestDDLThatIsRefused(t *testing.T) {
	t.Parallel()
	_, q := newEmpty(t)
	defer q.Close()
	for sql, c := range map[string]struct {
		code   codes.Code
		reason string
	}{
		"CREATE QUEUE Q (Id INT64) PRIMARY KEY (Id)":                                               {codes.InvalidArgument, "Payload"},
		"CREATE QUEUE Q (Id INT64, Payload BYTES(MAX)) PRIMARY KEY (Id)":                           {codes.InvalidArgument, "NOT NULL"},
		"CREATE QUEUE Q (Id INT64, Payload INT64 NOT NULL) PRIMARY KEY (Id)":                       {codes.InvalidArgument, "Payload"},
		"CREATE QUEUE Q (Id INT64, X INT64, Payload JSON NOT NULL) PRIMARY KEY (Id)":               {codes.InvalidArgument, "X"},
		"CREATE QUEUE Q (Id INT64, DeliverTime TIMESTAMP, Payload JSON NOT NULL) PRIMARY KEY (Id)": {codes.InvalidArgument, "DeliverTime"},
		"CREATE QUEUE":                           {codes.InvalidArgument, "line 1"},
		"DROP QUEUE Nothing":                     {codes.NotFound, "Queue not found: Nothing"},
		"DROP TABLE Tasks":                       {codes.InvalidArgument, "use DROP QUEUE"},
		"ALTER TABLE `tasks` ADD COLUMN X INT64": {codes.InvalidArgument, "use ALTER QUEUE"},
		"ALTER QUEUE Nothing SET OPTIONS (disable_send = true)":                                                                    {codes.NotFound, "Queue not found: Nothing"},
		"ALTER QUEUE Tasks SET OPTIONS (disable_send = 1)":                                                                         {codes.InvalidArgument, "TRUE, FALSE or NULL"},
		"ALTER QUEUE Tasks SET ON DELETE CASCADE":                                                                                  {codes.InvalidArgument, "not interleaved"},
		"ALTER QUEUE Tasks SET INTERLEAVE IN PARENT T":                                                                             {codes.InvalidArgument, "parent cannot change"},
		"ALTER QUEUE Tasks DROP ROW DELETION POLICY":                                                                               {codes.InvalidArgument, "there is none"},
		"ALTER QUEUE Tasks REPLACE ROW DELETION POLICY (OLDER_THAN(X, INTERVAL 1 DAY))":                                            {codes.InvalidArgument, "there is none"},
		"ALTER QUEUE Tasks ADD ROW DELETION POLICY (OLDER_THAN(Payload, INTERVAL 1 DAY))":                                          {codes.InvalidArgument, "Payload"},
		"CREATE TABLE spanqueue_queue_X (Id INT64) PRIMARY KEY (Id)":                                                               {codes.InvalidArgument, "reserved"},
		"CREATE UNIQUE INDEX Spanqueue_Sent_X ON T (Id)":                                                                           {codes.InvalidArgument, "reserved"},
		"CREATE TABLE IF NOT EXISTS `SPANQUEUE_ROLES` (Id INT64) PRIMARY KEY (Id)":                                                 {codes.InvalidArgument, "reserved"},
		"CREATE QUEUE Spanqueue_Roles (Id INT64, Payload JSON NOT NULL) PRIMARY KEY (Id)":                                          {codes.InvalidArgument, "reserved"},
		"CREATE QUEUE spanqueue_queue_Tasks (Id INT64, Payload JSON NOT NULL) PRIMARY KEY (Id)":                                    {codes.InvalidArgument, "reserved"},
		"CREATE QUEUE Q (spanqueueSentTime INT64, Payload JSON NOT NULL) PRIMARY KEY (spanqueueSentTime)":                          {codes.InvalidArgument, "column name spanqueueSentTime is reserved"},
		"CREATE QUEUE Q (spanqueue_row INT64, Payload JSON NOT NULL) PRIMARY KEY (spanqueue_row)":                                  {codes.InvalidArgument, "column name spanqueue_row is reserved"},
		"CREATE QUEUE Q (Spanqueue_Position INT64, Payload JSON NOT NULL) PRIMARY KEY (Spanqueue_Position)":                        {codes.InvalidArgument, "column name Spanqueue_Position is reserved"},
		"CREATE QUEUE Q (Id INT64, `SpanqueueGeneration` STRING(36), Payload JSON NOT NULL) PRIMARY KEY (Id, SpanqueueGeneration)": {codes.InvalidArgument, "column name SpanqueueGeneration is reserved"},
		"DROP INDEX spanqueue_sent_Tasks":                                                                                          {codes.InvalidArgument, "belongs to the queue Tasks"},
		"ALTER TABLE SPANQUEUE_QUEUE_TASKS ALTER COLUMN Declaration SET DEFAULT ('')":                                              {codes.InvalidArgument, "belongs to the queue Tasks"},
	} {
		_, err := q.RewriteDDL(t.Context(), emptyDB, []string{"CREATE TABLE T (Id INT64) PRIMARY KEY (Id)", sql})
		require.Equal(t, c.code, status.Code(err), "%s: %v", sql, err)
		require.ErrorContains(t, err, c.reason, sql)
	}
}

func TestAnInstanceHasAHundredQueues(t *testing.T) {
	t.Parallel()
	_, q := newEmpty(t) // has one
	defer q.Close()
	var statements []string
	for i := range 99 {
		statements = append(statements, fmt.Sprintf("CREATE QUEUE Q%d (Id INT64, Payload JSON NOT NULL) PRIMARY KEY (Id)", i))
	}
	_, err := q.RewriteDDL(t.Context(), emptyDB, statements)
	require.NoError(t, err)
	statements = append(statements, "CREATE QUEUE OneMore (Id INT64, Payload JSON NOT NULL) PRIMARY KEY (Id)")
	_, err = q.RewriteDDL(t.Context(), emptyDB, statements)
	require.Equal(t, codes.FailedPrecondition, status.Code(err))
	require.ErrorContains(t, err, "100 queues")
	_, err = q.RewriteDDL(t.Context(), emptyDB, append([]string{"DROP QUEUE Tasks"}, statements...))
	require.NoError(t, err)
}

func TestANewFrontKnowsTheQueues(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{}, taskQueue, wideQueue)
	require.NoError(t, b.commit(send("a", "x")))
	before := b.described()
	b.queues.Close()
	b.queues = b.newQueues(queues.Options{})
	require.Equal(t, before, b.described())
	require.Equal(t, "x", b.receive("").message(t).payload)
	require.NoError(t, b.commit(ack("a")))
}

func TestAQueueThatIsDroppedEndsItsReceivers(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{LeaseLength: time.Minute}, taskQueue, wideQueue)
	s := b.receive("")
	s.next(t)
	other := b.open(&spannerpb.ExecuteSqlRequest{Sql: "SELECT * FROM RECEIVE_Wide()"})
	other.next(t)
	require.NoError(t, b.commit(send("a", "")))
	s.message(t)
	b.ddl(`DROP QUEUE Tasks`)
	err := s.end(t)
	require.Equal(t, codes.NotFound, status.Code(err))
	require.ErrorContains(t, err, "Tasks")
	require.Equal(t, codes.NotFound, status.Code(b.commit(send("a", ""))))
	// The same name, another queue: nothing is left of the first.
	b.ddl(taskQueue)
	require.NoError(t, b.commit(send("a", "new")))
	require.Equal(t, "new", b.receive("").message(t).payload)
	other.silent(t, time.Millisecond)
}

func TestAQueueThatIsReplacedInOneBatch(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{LeaseLength: time.Minute}, taskQueue)
	s := b.receive("")
	require.NoError(t, b.commit(send("a", "old"), send("b", "old")))
	held := s.message(t)
	s.message(t)
	b.ddl(`DROP QUEUE Tasks`, taskQueue)
	require.NoError(t, b.commit(send("a", "new")))
	require.Equal(t, "new", s.message(t).payload)
	rows := b.renew(held.lease)
	require.Len(t, rows, 1)
	require.Empty(t, rows[0].new)
	b.ddl(`DROP QUEUE Tasks`, "CREATE QUEUE Tasks (Id STRING(36) NOT NULL, Payload STRING(MAX) NOT NULL) PRIMARY KEY (Id)")
	require.Equal(t, codes.NotFound, status.Code(s.end(t)), "another shape is another queue")
}

func TestNamesOfAnyLength(t *testing.T) {
	t.Parallel()
	long := "Q"
	for len(long) < 127 {
		long += "x"
	}
	b := newBench(t, queues.Options{},
		"CREATE QUEUE "+long+"A (Id INT64, Payload JSON NOT NULL) PRIMARY KEY (Id)",
		"CREATE QUEUE "+long+"B (Id INT64, Payload JSON NOT NULL) PRIMARY KEY (Id)",
		"CREATE QUEUE `SELECT` (`FROM` INT64, Payload JSON NOT NULL) PRIMARY KEY (`FROM`)")
	require.Len(t, b.described(), 3)
	b.ddl("DROP QUEUE "+long+"B", "drop queue `select`")
	require.Len(t, b.described(), 1)
}

func TestDeliveryIsDisabled(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{}, taskQueue+", OPTIONS (disable_delivery = true)")
	require.NoError(t, b.commit(send("a", "")))
	s := b.receive("max_duration => '100ms'")
	s.next(t)
	require.NoError(t, s.end(t))
}
