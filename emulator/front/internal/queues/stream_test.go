package queues_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues"
)

func TestDelivery(t *testing.T) {
	t.Parallel()
	const lease = time.Second
	b := newBench(t, queues.Options{LeaseLength: lease}, taskQueue)
	require.NoError(t, b.commit(send("a", "x")))
	s := b.receive("max_duration => '1m'")
	require.NotEmpty(t, s.next(t).GetMetadata().GetRowType().GetFields())
	m := s.message(t)
	require.Equal(t, "a", m.id)
	require.Equal(t, "x", m.payload)
	require.True(t, m.last)
	require.WithinDuration(t, time.Now().Add(lease), m.expires, lease)

	// Not acknowledged: it comes back when its lease has ended, and not before.
	again := s.message(t)
	require.Equal(t, "a", again.id)
	require.False(t, time.Now().Before(m.expires))
	require.NotEqual(t, m.lease, again.lease)
	require.NoError(t, b.commit(ack("a")))

	// By statement, and with another message on the same key.
	b.dml("INSERT INTO Tasks (Id, Payload) VALUES ('a', b'y'), ('b', b'z')")
	require.ElementsMatch(t, []string{"a", "b"}, s.ids(t, 2))
	// Ack and send of one key in one commit: the new message is not held back by the old one's lease.
	require.NoError(t, b.commit(ack("a"), send("a", "again"), ack("b")))
	require.Equal(t, "again", s.message(t).payload)
	require.NoError(t, b.commit(ack("a")))
	s.silent(t, 2*lease)
}

func TestAPastTimeBecomesNow(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{}, taskQueue)
	s := b.receive("")
	begun := time.Now()
	require.NoError(t, b.commit(sendAt("past", begun.Add(-time.Hour))))
	require.False(t, s.message(t).due.Before(begun))
	b.dml("INSERT INTO Tasks (Id, Payload, DeliverTime) VALUES ('dml', b'', '2020-01-01T00:00:00.123456789Z')")
	require.Equal(t, "2020-01-01 00:00:00.123456789 +0000 UTC", s.message(t).due.String())
}

func TestOrderOfDueTimes(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{}, taskQueue)
	s := b.receive("")
	s.next(t)
	due := map[string]time.Time{}
	for i := range 5 {
		id := fmt.Sprint(i)
		due[id] = time.Now().Add(time.Duration(500-100*i)*time.Millisecond + 123).Round(0)
		require.NoError(t, b.commit(sendAt(id, due[id])))
	}
	for i := range 5 {
		m := s.message(t)
		require.Equal(t, fmt.Sprint(4-i), m.id)
		require.True(t, due[m.id].Equal(m.due), "to the nanosecond: %v and %v", due[m.id], m.due)
		require.False(t, time.Now().Before(m.due), "too early")
	}
}

func TestMaxBatchSizeIsAllThatRunsAhead(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{}, taskQueue)
	var sends []*spannerpb.Mutation
	for i := range 20 {
		sends = append(sends, send(fmt.Sprint(i), ""))
	}
	require.NoError(t, b.commit(sends...))
	slow := b.receive("max_batch_size => 3")
	first := slow.message(t) // and now it takes no more
	other := b.receive("max_batch_size => 50")
	got := append(other.ids(t, 17), first.id)
	other.silent(t, 100*time.Millisecond)
	got = append(got, slow.ids(t, 2)...)
	require.Len(t, unique(got), 20)
}

// A receiver whose filter lets little pass is shown more at a time, but what passes is not leased beyond its batch.
func TestMaxBatchSizeHoldsBehindAFilter(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{}, taskQueue)
	var refused, passing []*spannerpb.Mutation
	for i := range 40 { // shown 2, 4, 8 and 16 at a time, and then the rest with all that pass
		refused = append(refused, send(fmt.Sprint("r", i), ""))
	}
	for i := range 20 {
		passing = append(passing, send(fmt.Sprint("p", i), ""))
	}
	require.NoError(t, b.commit(refused...))
	require.NoError(t, b.commit(passing...))
	slow := b.open(&spannerpb.ExecuteSqlRequest{Sql: "SELECT * FROM RECEIVE_Tasks(max_batch_size => 2) WHERE STARTS_WITH(Id, 'p')"})
	first := slow.message(t) // and now it takes no more
	other := b.receive("max_batch_size => 100")
	got := append(other.ids(t, 58), first.id)
	other.silent(t, 100*time.Millisecond)
	require.Len(t, unique(append(got, slow.ids(t, 1)...)), 60)
}

func TestLastOfABatch(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{}, taskQueue)
	require.NoError(t, b.commit(send("1", ""), send("2", ""), send("3", ""), send("4", ""), send("5", "")))
	for _, list := range []string{"*", "Id, Payload, DeliverTime, SpannerLeaseExpirationTimestamp, SpannerLeaseToken, IF(SpannerLastBatchMessage, TRUE, FALSE)"} {
		s := b.open(&spannerpb.ExecuteSqlRequest{Sql: "SELECT " + list + " FROM RECEIVE_Tasks(max_batch_size => 2) WHERE Id != '2'"})
		var last []bool
		var ids []string
		for range 4 {
			m := s.message(t)
			last, ids = append(last, m.last), append(ids, m.id)
		}
		// Batches are (1 2) (3 4) (5), of which 2 is refused.
		require.Equal(t, []bool{true, false, true, true}, last, list)
		s.cancel()
		require.Error(t, s.end(t)) // before anything is sent again, which it would take
		for _, id := range ids {
			require.NoError(t, b.commit(ack(id), send(id, "")))
		}
	}
}

func TestFilter(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{}, taskQueue)
	var sends []*spannerpb.Mutation
	for i := range 10 {
		sends = append(sends, send(fmt.Sprint(i), ""))
	}
	require.NoError(t, b.commit(sends...))
	odd := b.open(&spannerpb.ExecuteSqlRequest{Sql: "SELECT q.* FROM RECEIVE_Tasks(max_batch_size => 3) AS q WHERE MOD(CAST(q.Id AS INT64), 2) = 1 -- odd"})
	require.ElementsMatch(t, []string{"1", "3", "5", "7", "9"}, odd.ids(t, 5))
	odd.silent(t, 20*time.Millisecond)
	evaluated := b.queries.Load()
	odd.silent(t, 50*time.Millisecond)
	require.Equal(t, evaluated, b.queries.Load(), "refused messages are evaluated again")
	even := b.receive("")
	require.ElementsMatch(t, []string{"0", "2", "4", "6", "8"}, even.ids(t, 5))
	// What it refused once is not offered to it again; other messages are.
	require.NoError(t, b.commit(ack("0"), send("11", "")))
	require.Equal(t, "11", odd.message(t).id)
	odd.silent(t, 50*time.Millisecond)
}

// A filter that lets little pass does not need a turn for each message that it refuses.
func TestARareMessageIsFoundSoon(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{}, taskQueue)
	var sends []*spannerpb.Mutation
	for i := range 2000 {
		sends = append(sends, send(fmt.Sprint(i), ""))
	}
	require.NoError(t, b.commit(sends...))
	s := b.open(&spannerpb.ExecuteSqlRequest{Sql: "SELECT * FROM RECEIVE_Tasks(max_batch_size => 2) WHERE CAST(Id AS INT64) >= 1995"})
	require.Len(t, unique(s.ids(t, 2)), 2)
	require.Less(t, b.queries.Load(), int64(30))
	others := b.open(&spannerpb.ExecuteSqlRequest{Sql: "SELECT * FROM RECEIVE_Tasks() WHERE CAST(Id AS INT64) >= 1995"})
	require.Len(t, unique(append(others.ids(t, 1), s.ids(t, 2)...)), 3, "no more than two were ahead")
}

func TestExpressions(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{}, taskQueue)
	require.NoError(t, b.commit(send("a", "one"), send("b", "two")))
	s := b.open(&spannerpb.ExecuteSqlRequest{Sql: `SELECT LENGTH(payload) + 1 AS n, id, CONCAT(Id, '/', SpannerLeaseToken) FROM RECEIVE_Tasks() /* c */ WHERE TRUE`})
	fields := s.next(t).GetMetadata().GetRowType().GetFields()
	require.Len(t, fields, 3)
	require.Equal(t, "n", fields[0].GetName())
	require.Equal(t, spannerpb.TypeCode_INT64, fields[0].GetType().GetCode())
	require.Equal(t, "id", fields[1].GetName())
	for _, id := range []string{"a", "b"} {
		v := s.next(t).GetValues()
		require.Equal(t, "4", v[0].GetStringValue())
		require.Equal(t, id, v[1].GetStringValue())
		require.True(t, strings.HasPrefix(v[2].GetStringValue(), id+"/"))
		require.Len(t, v[2].GetStringValue(), 2+26)
	}
}

func TestStatementsThatAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{}, taskQueue)
	for sql, reason := range map[string]string{
		"SELECT COUNT(*) FROM RECEIVE_Tasks()":                         "aggregate functions cannot",
		"SELECT MAX(Id) FROM RECEIVE_Tasks()":                          "aggregate functions cannot",
		"SELECT Id FROM RECEIVE_Tasks() ORDER BY Id":                   "ORDER BY",
		"SELECT Nothing FROM RECEIVE_Tasks()":                          "Unrecognized name: Nothing, in the select list of RECEIVE_Tasks",
		"SELECT Id FROM RECEIVE_Tasks() WHERE Id":                      "BOOL",
		"SELECT Id FROM RECEIVE_Tasks() WHERE SpannerLeaseToken = ''":  "Unrecognized name: SpannerLeaseToken, in the WHERE of RECEIVE_Tasks, which sees Id, Payload, DeliverTime",
		"SELECT Id FROM RECEIVE_Tasks() WHERE Id = @missing":           "missing",
		"SELECT Id FROM RECEIVE_Tasks(max_duration => 'soon')":         "not a duration",
		"SELECT Id FROM RECEIVE_Tasks(max => '5s')":                    "no argument max",
		"SELECT Id FROM RECEIVE_Tasks('5s')":                           "named arguments",
		"SELECT Id FROM RENEWLEASE_Tasks(lease_tokens => [])":          "Unrecognized name",
		"SELECT COUNT(*) FROM RENEWLEASE_Tasks(lease_tokens => [])":    "aggregate functions cannot",
		"SELECT * FROM RENEWLEASE_Tasks()":                             "needs the argument",
		"SELECT SpannerNewLeaseToken FROM RENEWLEASE_Tasks(max => [])": "no argument max",
	} {
		kind, _, err := b.queues.Statement(t.Context(), b.name, sql)
		require.NoError(t, err, sql)
		require.NotEqual(t, queues.Pass, kind, sql)
		err = b.open(&spannerpb.ExecuteSqlRequest{Sql: sql}).end(t)
		require.Equal(t, codes.InvalidArgument, status.Code(err), "%s: %v", sql, err)
		require.ErrorContains(t, err, reason, sql)
		require.NotContains(t, err.Error(), "spanqueue_", sql)
	}
	_, err := b.queues.ServeUnary(t.Context(), b.name, &spannerpb.ExecuteSqlRequest{Sql: "SELECT Id FROM RECEIVE_Tasks()"})
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	err = b.open(&spannerpb.ExecuteSqlRequest{Sql: "SELECT Id FROM RECEIVE_Nothing()"}).end(t)
	require.Equal(t, codes.NotFound, status.Code(err))
}

func TestParametersAreCheckedByType(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{}, taskQueue)
	for code, want := range map[spannerpb.TypeCode]codes.Code{spannerpb.TypeCode_STRING: codes.OK, spannerpb.TypeCode_INT64: codes.InvalidArgument} {
		for range 2 { // checked by the emulator, and remembered
			err := b.open(&spannerpb.ExecuteSqlRequest{
				Sql:        "SELECT Id FROM RECEIVE_Tasks(max_duration => '1ms') WHERE Id = @x",
				Params:     &structpb.Struct{Fields: map[string]*structpb.Value{"x": structpb.NewStringValue("1")}},
				ParamTypes: map[string]*spannerpb.Type{"x": {Code: code}},
			}).end(t)
			require.Equal(t, want, status.Code(err), "%v: %v", code, err)
		}
	}
	before := b.queries.Load()
	require.NoError(t, b.receive("max_duration => '1ms'").end(t))
	require.NoError(t, b.receive("max_duration => '2ms'").end(t))
	require.Equal(t, before+1, b.queries.Load(), "a statement is checked once")
}

func TestAFilterThatFailsEndsTheStreamAndKeepsTheMessages(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{LeaseLength: time.Minute}, taskQueue)
	s := b.open(&spannerpb.ExecuteSqlRequest{Sql: "SELECT * FROM RECEIVE_Tasks() WHERE CAST(Id AS INT64) > 0"})
	s.next(t)
	require.NoError(t, b.commit(send("1", ""), send("a", "")))
	require.Equal(t, codes.OutOfRange, status.Code(s.end(t)))
	require.ElementsMatch(t, []string{"1", "a"}, b.receive("").ids(t, 2))
}

func TestPlanMode(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{}, taskQueue)
	require.NoError(t, b.commit(send("a", "")))
	s := b.open(&spannerpb.ExecuteSqlRequest{Sql: "SELECT Id FROM RECEIVE_Tasks()", QueryMode: spannerpb.ExecuteSqlRequest_PLAN})
	require.Len(t, s.next(t).GetMetadata().GetRowType().GetFields(), 1)
	require.NoError(t, s.end(t))
}

// A batch of more bytes than the emulator's answer can carry is read in pieces.
func TestLargeBatch(t *testing.T) {
	t.Parallel()
	b := newBench(t, queues.Options{}, taskQueue)
	payload := strings.Repeat("x", maxAnswer/5)
	want := []string{}
	for i := range 12 {
		want = append(want, fmt.Sprint(i))
		require.NoError(t, b.commit(send(fmt.Sprint(i), payload)))
	}
	require.ElementsMatch(t, want, b.receive("").ids(t, 12))
}

func unique(ids []string) map[string]bool {
	m := map[string]bool{}
	for _, id := range ids {
		m[id] = true
	}
	return m
}
