package backing

import (
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/spanqueue/spanqueue/schema"
)

func parse(t testing.TB, ddl string) *Queue {
	t.Helper()
	s, err := schema.ParseStatement(ddl)
	require.NoError(t, err)
	return New(s.(*schema.CreateQueue).Queue)
}

// The declaration must give back exactly the queue, whatever its text contains.
func TestDeclarationRoundTrip(t *testing.T) {
	t.Parallel()
	for _, ddl := range []string{
		"CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL) PRIMARY KEY (Id)",
		"-- it's \"quoted\" \\ and `more`, é\r\n\tCREATE QUEUE `Q` (Id STRING(36) NOT NULL, S INT64 AS (LENGTH('''a\\'\"b''')) STORED, Payload BYTES(10) NOT NULL,) PRIMARY KEY (S, Id DESC), INTERLEAVE IN PARENT P ON DELETE CASCADE",
	} {
		q := parse(t, ddl)
		created := q.Create(ddl, 0)
		declaration := created[len(created)-1]
		from := strings.Index(declaration, "DEFAULT (") + len("DEFAULT (")
		to := strings.LastIndex(declaration, ")\n)")
		again, ok := Declared(declaration[from:to])
		require.True(t, ok, declaration)
		require.Equal(t, q, again)
	}
	for _, text := range []string{"", "1", "'", "'DROP QUEUE Q'", "'CREATE QUEUE'", "'SELECT 1'", "\"\\0"} {
		_, ok := Declared(text)
		require.False(t, ok, text)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	require.Equal(t, "spanqueue_sent_Q", objectName(indexPrefix, "Q"))
	long := strings.Repeat("x", 127)
	a, b := objectName(indexPrefix, long+"a"), objectName(indexPrefix, long+"b")
	require.NotEqual(t, a, b)
	require.Len(t, a, maxName)
	require.Equal(t, objectName(indexPrefix, strings.ToUpper(long)+"A")[maxName-16:], a[maxName-16:], "case does not matter")
	q := parse(t, "CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL) PRIMARY KEY (Id)")
	require.True(t, q.Owns("SPANQUEUE_SENT_q"))
	require.False(t, q.Owns("Q"))
}

func TestColumns(t *testing.T) {
	t.Parallel()
	q := parse(t, "CREATE QUEUE Q (B STRING(5) HIDDEN, A app.Color NOT NULL, Payload `app`.Task NOT NULL) PRIMARY KEY (A, B)")
	var names []string
	for _, c := range q.ReceiveColumns() {
		names = append(names, c.Name)
		require.NotNil(t, c.Type)
	}
	require.Equal(t, "B A Payload DeliverTime SpannerLeaseExpirationTimestamp SpannerLeaseToken SpannerLastBatchMessage", strings.Join(names, " "))
	columns := q.MessageColumns()
	require.True(t, columns[0].Hidden)
	require.Equal(t, spannerpb.TypeCode_ENUM, columns[1].Type.GetCode())
	require.Equal(t, "app.Color", columns[1].Type.GetProtoTypeFqn())
	require.Equal(t, spannerpb.TypeCode_PROTO, columns[2].Type.GetCode())
	for _, kind := range []schema.Type{schema.Bool(), schema.Int64(), schema.Float32(), schema.Float64(), schema.Numeric(), schema.String(1), schema.Bytes(1), schema.Date(), schema.Timestamp(), schema.UUID(), schema.JSON()} {
		require.NotZero(t, typeOf(kind, spannerpb.TypeCode_ENUM).GetCode(), kind)
	}
}

func TestKeyEncoding(t *testing.T) {
	t.Parallel()
	keys := []*structpb.ListValue{
		{},
		{Values: []*structpb.Value{structpb.NewNullValue()}},
		{Values: []*structpb.Value{structpb.NewStringValue("")}},
		{Values: []*structpb.Value{structpb.NewStringValue("1")}},
		{Values: []*structpb.Value{structpb.NewNumberValue(1)}},
		{Values: []*structpb.Value{structpb.NewBoolValue(true)}},
		{Values: []*structpb.Value{structpb.NewStringValue("1"), structpb.NewStringValue("")}},
		{Values: []*structpb.Value{structpb.NewStringValue("\x00\x01é")}},
	}
	seen := map[string]bool{}
	for _, key := range keys {
		encoded, err := EncodeKey(key)
		require.NoError(t, err)
		require.False(t, seen[encoded])
		seen[encoded] = true
		decoded, err := DecodeKey(encoded)
		require.NoError(t, err)
		require.Equal(t, key.AsSlice(), decoded.AsSlice())
	}
	_, err := DecodeKey("\xff")
	require.Error(t, err)
}

func TestRowsOfAnotherShape(t *testing.T) {
	t.Parallel()
	q := parse(t, "CREATE QUEUE Q (Id INT64, Payload JSON NOT NULL) PRIMARY KEY (Id)")
	row := func(values ...string) *spannerpb.ResultSet {
		l := &structpb.ListValue{}
		for _, v := range values {
			l.Values = append(l.Values, structpb.NewStringValue(v))
		}
		return &spannerpb.ResultSet{Rows: []*structpb.ListValue{l}}
	}
	for _, rs := range []*spannerpb.ResultSet{row(), row("1"), row("1", "no time", "g")} {
		_, err := q.LogMessages(rs)
		require.Error(t, err)
		_, err = q.Messages(rs)
		require.Error(t, err)
	}
	m, err := q.LogMessages(row("1", "2026-01-02T03:04:05.123456789Z", "g"))
	require.NoError(t, err)
	require.Equal(t, 123456789, m[0].Due.Nanosecond())
	require.Equal(t, "2026-01-02T03:04:05.123456789Z", FormatTime(m[0].Due.In(time.FixedZone("x", 3600))))
}
