package rowcodec_test

import (
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/civil"
	"cloud.google.com/go/spanner"
	"github.com/google/uuid"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
)

func column(name string, t schema.Type) schema.Column { return schema.Column{Name: name, Type: t} }

func keyOf(t *testing.T, columns ...schema.Column) rowcodec.Key {
	t.Helper()
	k, err := rowcodec.NewKey(schema.Queue{Name: "Q", KeyColumns: columns, Payload: schema.Bytes(schema.Max)})
	require.NoError(t, err)
	return k
}

func TestKeyPartsSurviveARow(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 123456789, time.UTC)
	id := uuid.MustParse("5e0f5d0c-0f6d-4a9e-8d5c-0e8b7b2f1a11")
	for _, c := range []struct {
		columnType schema.Type
		given      any
		want       any
	}{
		{schema.Int64(), int64(math.MaxInt64), int64(math.MaxInt64)},
		{schema.Int64(), int64(math.MinInt64), int64(math.MinInt64)},
		{schema.Int64(), 7, int64(7)},
		{schema.Int64(), nil, spanner.NullInt64{}},
		{schema.Int64(), spanner.NullInt64{Int64: 3, Valid: true}, int64(3)},
		{schema.String(20), "", ""},
		{schema.String(20), "ключ \x00 ✓", "ключ \x00 ✓"},
		{schema.String(20), spanner.NullString{}, spanner.NullString{}},
		{schema.Bytes(3), []byte{0, 255, 1}, []byte{0, 255, 1}},
		{schema.Bytes(3), []byte{}, []byte{}},
		{schema.Bytes(3), nil, []byte(nil)},
		{schema.Bool(), true, true},
		{schema.Timestamp(), at, at},
		{schema.Timestamp(), at.In(time.FixedZone("elsewhere", 3600)), at},
		{schema.Date(), civil.Date{Year: 2026, Month: 2, Day: 3}, civil.Date{Year: 2026, Month: 2, Day: 3}},
		{schema.Numeric(), big.NewRat(5, 2), *big.NewRat(5, 2)},
		{schema.UUID(), id, id},
		{schema.UUID(), nil, spanner.NullUUID{}},
	} {
		k := keyOf(t, column("Id", c.columnType))
		got, err := k.Normalize(spanner.Key{c.given})
		require.NoError(t, err, "%v", c)
		require.Equal(t, spanner.Key{c.want}, got)

		row, err := spanner.NewRow([]string{"Id"}, []any{got[0]})
		require.NoError(t, err)
		read, err := k.Read(row)
		require.NoError(t, err)
		require.Equal(t, rowcodec.ID(got), rowcodec.ID(read))
		require.Equal(t, rowcodec.IsNull(got[0]), rowcodec.IsNull(read[0]))
	}
}

func TestKeyRefusesByName(t *testing.T) {
	t.Parallel()
	notNull := schema.Column{Name: "Id", Type: schema.String(3), NotNull: true}
	for _, c := range []struct {
		column schema.Column
		key    spanner.Key
		says   []string
	}{
		{notNull, spanner.Key{"a", "b"}, []string{"2 parts", "has 1", "Id"}},
		{notNull, spanner.Key{7}, []string{"Id", "STRING(3)", "int"}},
		{notNull, spanner.Key{nil}, []string{"Id", "NOT NULL"}},
		{notNull, spanner.Key{"four"}, []string{"STRING(3)", "4 characters"}},
		{notNull, spanner.Key{"\xff"}, []string{"UTF-8"}},
		{column("Id", schema.Bytes(2)), spanner.Key{[]byte{1, 2, 3}}, []string{"BYTES(2)", "3 bytes"}},
		{column("Id", schema.Int64()), spanner.Key{uint64(1)}, []string{"INT64", "uint64"}},
		{column("Id", schema.Numeric()), spanner.Key{big.NewRat(1, 3)}, []string{"Id", "1/3"}},
		{column("Id", schema.Numeric()), spanner.Key{new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(29), nil))}, []string{"29 digits"}},
		{column("Id", schema.Timestamp()), spanner.Key{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, []string{"10000"}},
		{column("Id", schema.String(schema.Max)), spanner.Key{strings.Repeat("x", 8001)}, []string{"8000 bytes at most", "8001"}},
		{column("Id", schema.Bytes(schema.Max)), spanner.Key{make([]byte, 8001)}, []string{"8000 bytes at most", "8001"}},
		{column("Id", schema.Date()), spanner.Key{civil.Date{Year: 2026, Month: 2, Day: 30}}, []string{"2026-02-30"}},
	} {
		_, err := keyOf(t, c.column).Normalize(c.key)
		require.Error(t, err)
		for _, s := range c.says {
			require.ErrorContains(t, err, s)
		}
	}
}

func TestKeysThatCannotBeServed(t *testing.T) {
	t.Parallel()
	for _, c := range []schema.Column{
		column("Score", schema.Float64()),
		column("Kind", schema.Proto("shop.Kind")),
		{Name: "Shard", Type: schema.Int64(), Generated: "MOD(Id, 4)"},
	} {
		_, err := rowcodec.NewKey(schema.Queue{Name: "Q", KeyColumns: []schema.Column{c}, Payload: schema.JSON()})
		require.ErrorContains(t, err, c.Name)
	}
}

// F35: what is sent is what comes back, or it is refused.
func TestF35PayloadsKeepTheirBytes(t *testing.T) {
	t.Parallel()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, c := range []struct {
		columnType schema.Type
		payload    []byte
	}{
		{schema.Bytes(schema.Max), all},
		{schema.Bytes(schema.Max), nil},
		{schema.Bytes(256), all},
		{schema.Proto("shop.Order"), all},
		{schema.String(schema.Max), []byte("\x00 ключ ✓")},
		{schema.String(schema.Max), []byte{}},
		{schema.JSON(), []byte(`{"id":3889108265204450030,"d":145688415796432520}`)},
		{schema.JSON(), []byte(`[0.1, 1e2, -0.0, 1E+300, 18446744073709551615, -9223372036854775808, 0e99999999999]`)},
	} {
		p := rowcodec.NewPayload(c.columnType)
		require.NoError(t, p.Check(c.payload))
		row, err := spanner.NewRow([]string{"Payload"}, []any{p.Encode(c.payload)})
		require.NoError(t, err)
		got, err := p.Read(row, 0)
		require.NoError(t, err)
		require.Equal(t, string(c.payload), string(got))
		require.True(t, p.Equal(c.payload, got))
	}
	for _, c := range []struct {
		columnType schema.Type
		payload    string
		says       string
	}{
		{schema.String(schema.Max), "\xff", "UTF-8"},
		{schema.String(2), "три", "3 characters"},
		{schema.String(schema.Max), strings.Repeat("x", 2_621_441), "2621440 characters at most"},
		{schema.Bytes(2), "abc", "3 bytes"},
		{schema.Bytes(schema.Max), strings.Repeat("x", 10<<20+1), "10485760"},
		{schema.JSON(), "", "JSON"},
		{schema.JSON(), `{"a":1,"a":2}`, "JSON"},
		{schema.JSON(), `{"a":1`, "JSON"},
		{schema.JSON(), `{"a":[0.12345678901234567890123]}`, "0.12345678901234567890123 would be rounded"},
		{schema.JSON(), `18446744073709551616`, "rounded"},
		{schema.JSON(), `-9223372036854775809`, "rounded"},
		{schema.JSON(), `9007199254740993.0`, "rounded"},
		{schema.JSON(), `1e400`, "rounded"},
		{schema.JSON(), `1e-400`, "rounded"},
	} {
		require.ErrorContains(t, rowcodec.NewPayload(c.columnType).Check([]byte(c.payload)), c.says)
	}
}

func TestJSONPayloadsAreComparedAsTheDatabaseHoldsThem(t *testing.T) {
	t.Parallel()
	p := rowcodec.NewPayload(schema.JSON())
	require.True(t, p.Equal([]byte(`{"a":1,"b":[1, 2]}`), []byte(`{ "b":[1,2], "a":1 }`)))
	require.False(t, p.Equal([]byte(`9007199254740993`), []byte(`9007199254740992`)))
	require.False(t, p.Equal([]byte(`{"a":null}`), []byte(`{}`)))
	require.True(t, p.Equal([]byte(`[-0, 1e2, 1.10, "\u00e9\/"]`), []byte(`[0, 100.0, 1.1, "é/"]`)))
	require.False(t, rowcodec.NewPayload(schema.String(schema.Max)).Equal([]byte(`{"a":1}`), []byte(`{ "a":1}`)))
}
