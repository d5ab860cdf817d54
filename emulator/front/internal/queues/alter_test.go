package queues_test

import (
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues"
)

func (b *bench) refused(want codes.Code, statements ...string) error {
	b.t.Helper()
	_, err := b.queues.RewriteDDL(b.t.Context(), b.name, statements)
	require.Equal(b.t, want, status.Code(err), "%v", err)
	return err
}

const parentTable = `CREATE TABLE Users (Id INT64 NOT NULL) PRIMARY KEY (Id)`

// childQueue is a queue below Users, as interleave says.
func childQueue(interleave string) string {
	return `CREATE QUEUE Child (
  Id INT64 NOT NULL,
  N INT64 NOT NULL,
  Payload STRING(MAX) NOT NULL
) PRIMARY KEY (Id, N)` + interleave
}

// What ALTER QUEUE says is shown, obeyed by the emulator, and known to a new front.
func TestAlterQueue(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{}, parentTable, childQueue(",\nINTERLEAVE IN PARENT Users"))
	show := func() string {
		t.Helper()
		d := b.described()
		require.Len(t, d, 2)
		return d[1]
	}
	for _, step := range []struct{ alter, want string }{
		{"ALTER QUEUE Child SET ON DELETE CASCADE", ",\nINTERLEAVE IN PARENT Users ON DELETE CASCADE"},
		{"alter queue `child` add row deletion policy (older_than(delivertime, interval 3 day))", ",\nINTERLEAVE IN PARENT Users ON DELETE CASCADE,\nROW DELETION POLICY (OLDER_THAN(DeliverTime, INTERVAL 3 DAY))"},
		{"ALTER QUEUE Child REPLACE ROW DELETION POLICY (OLDER_THAN(DeliverTime, INTERVAL 4 DAY));", ",\nINTERLEAVE IN PARENT Users ON DELETE CASCADE,\nROW DELETION POLICY (OLDER_THAN(DeliverTime, INTERVAL 4 DAY))"},
		{"ALTER QUEUE Child SET OPTIONS (disable_send = true, receive_mode = 'PULL')", ",\nINTERLEAVE IN PARENT Users ON DELETE CASCADE,\nROW DELETION POLICY (OLDER_THAN(DeliverTime, INTERVAL 4 DAY)),\nOPTIONS (receive_mode = 'PULL', disable_send = true)"},
		{"ALTER QUEUE Child SET ON DELETE NO ACTION", ",\nINTERLEAVE IN PARENT Users,\nROW DELETION POLICY (OLDER_THAN(DeliverTime, INTERVAL 4 DAY)),\nOPTIONS (receive_mode = 'PULL', disable_send = true)"},
		{"ALTER QUEUE Child DROP ROW DELETION POLICY", ",\nINTERLEAVE IN PARENT Users,\nOPTIONS (receive_mode = 'PULL', disable_send = true)"},
		{"ALTER QUEUE Child SET OPTIONS (disable_send = NULL, receive_mode = NULL)", ",\nINTERLEAVE IN PARENT Users"},
	} {
		b.ddl(step.alter)
		require.Equal(t, canonical(t, childQueue(step.want)), show(), step.alter)
		b.queues.Close()
		b.queues = b.newQueues(queues.Options{})
		require.Equal(t, canonical(t, childQueue(step.want)), show(), "to a new front, after %s", step.alter)
	}
	// The emulator has followed: there is no policy any more, and the last ON DELETE holds.
	b.refused(codes.InvalidArgument, "ALTER QUEUE Child DROP ROW DELETION POLICY")
	require.NoError(t, b.commit(insertUser(1)))
	require.NoError(t, b.commit(sendChild("1", "1")))
	require.Equal(t, codes.FailedPrecondition, status.Code(b.commit(deleteUser(1))))
	b.ddl("ALTER QUEUE Child SET ON DELETE CASCADE", "ALTER QUEUE Child ADD ROW DELETION POLICY (OLDER_THAN(DeliverTime, INTERVAL 1 DAY))")
	require.NoError(t, b.commit(deleteUser(1)))
}

// A queue can be altered in the batch that creates it.
func TestAlterQueueInTheBatchThatCreatesIt(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{}, parentTable, childQueue(", INTERLEAVE IN Users"),
		"ALTER QUEUE Child SET INTERLEAVE IN PARENT Users ON DELETE CASCADE", "ALTER QUEUE Child SET OPTIONS (disable_delivery = true)")
	require.Equal(t, canonical(t, childQueue(", INTERLEAVE IN PARENT Users ON DELETE CASCADE, OPTIONS (disable_delivery = true)")), b.described()[1])
	require.Equal(t, codes.NotFound, status.Code(b.commit(sendChild("1", "1"))), "the parent is enforced")
}

// INTERLEAVE IN without PARENT demands no parent row, but the table and a key that fits.
func TestInterleaveInWithoutParent(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{}, parentTable, childQueue(", INTERLEAVE IN Users"))
	require.Equal(t, canonical(t, childQueue(", INTERLEAVE IN Users")), b.described()[1])
	require.NoError(t, b.commit(sendChild("1", "1")))
	s := b.open(&spannerpb.ExecuteSqlRequest{Sql: "SELECT N FROM RECEIVE_Child()"})
	s.next(t)
	require.Equal(t, "1", s.next(t).GetValues()[0].GetStringValue())
	require.ErrorContains(t, b.refused(codes.FailedPrecondition, "DROP TABLE Users"), "Child")

	require.ErrorContains(t, b.refused(codes.Unimplemented, "ALTER QUEUE Child SET INTERLEAVE IN PARENT Users"), "no messages")
	require.NoError(t, b.commit(ackChild("1", "1")))
	b.ddl("ALTER QUEUE Child SET INTERLEAVE IN PARENT Users")
	require.Equal(t, codes.NotFound, status.Code(b.commit(sendChild("1", "1"))), "there is no parent row")
	require.NoError(t, b.commit(insertUser(1)))
	require.NoError(t, b.commit(sendChild("1", "1")))
	require.Equal(t, "1", s.next(t).GetValues()[0].GetStringValue(), "the open stream goes on")
	require.NoError(t, b.commit(ackChild("1", "1")))
	b.ddl("ALTER QUEUE Child SET INTERLEAVE IN Users", "DROP QUEUE Child", "DROP TABLE Users")

	for name, statements := range map[string][]string{
		"no such table": {childQueue(", INTERLEAVE IN Nope")},
		"another key":   {"CREATE TABLE Other (X STRING(5) NOT NULL) PRIMARY KEY (X)", childQueue(", INTERLEAVE IN Other")},
	} {
		require.Error(t, b.tryDDL(statements...), name)
	}
	require.Empty(t, b.described())
}

// disable_send is obeyed by what comes after it, disable_delivery by streams that are open too.
func TestOptionsTakeEffectAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{LeaseLength: time.Second}, taskQueue)
	s := b.receive("max_batch_size => 2")
	s.next(t)
	require.NoError(t, b.commit(send("a", "1"), send("b", "2")))
	first := s.message(t)

	// The second is on its way: the client does not take it yet.
	b.ddl("ALTER QUEUE Tasks SET OPTIONS (disable_delivery = true)")
	inFlight := s.message(t)
	require.NoError(t, b.commit(send("c", "3")))
	s.silent(t, 1500*time.Millisecond) // also what comes back when its lease has ended
	require.Empty(t, b.renew(first.lease))
	fresh := b.receive("max_duration => '200ms'")
	fresh.next(t)
	require.NoError(t, fresh.end(t), "a stream opens, and stays empty")

	b.ddl("ALTER QUEUE Tasks SET OPTIONS (disable_delivery = false)")
	require.ElementsMatch(t, []string{"a", "b", "c"}, s.ids(t, 3))
	require.Equal(t, "b", inFlight.id)

	b.ddl("ALTER QUEUE Tasks SET OPTIONS (disable_send = true)")
	require.Equal(t, codes.FailedPrecondition, status.Code(b.commit(send("d", ""))))
	_, _, err := b.queues.Statement(t.Context(), b.name, "INSERT INTO Tasks (Id, Payload) VALUES ('d', b'')")
	require.Equal(t, codes.FailedPrecondition, status.Code(err))
	require.NoError(t, b.commit(ack("a")), "what is there can be acknowledged")
	b.ddl("ALTER QUEUE Tasks SET OPTIONS (disable_send = NULL)")
	require.NoError(t, b.commit(send("d", "")))
	require.Equal(t, "d", s.message(t).id)
}

// A batch that was leased and lies before a client that takes nothing is not sent once delivery is disabled.
func TestDisabledDeliveryHoldsBackWhatIsLeased(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{LeaseLength: time.Minute}, taskQueue)
	require.NoError(t, b.commit(send("a", ""), send("b", ""), send("c", "")))
	s := b.receive("")
	s.next(t)
	first := s.message(t) // the next one waits for the client already
	b.ddl("ALTER QUEUE Tasks SET OPTIONS (disable_delivery = true)")
	second := s.message(t)
	s.silent(t, 200*time.Millisecond)
	b.ddl("ALTER QUEUE Tasks SET OPTIONS (disable_delivery = false)")
	third := s.message(t)
	require.ElementsMatch(t, []string{"a", "b", "c"}, []string{first.id, second.id, third.id})
	require.Len(t, b.renew(first.lease, second.lease, third.lease), 3)
}
