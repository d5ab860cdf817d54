package table

import (
	"fmt"
	"math/big"
	"testing"

	"cloud.google.com/go/civil"
	"cloud.google.com/go/spanner"
	"github.com/google/uuid"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
)

func TestTokensFindTheirRows(t *testing.T) {
	t.Parallel()
	q := schema.Queue{Name: "Q", Payload: schema.JSON(), KeyColumns: []schema.Column{
		{Name: "I", Type: schema.Int64()}, {Name: "S", Type: schema.String(schema.Max)}, {Name: "B", Type: schema.Bytes(schema.Max)},
		{Name: "T", Type: schema.Timestamp()}, {Name: "D", Type: schema.Date()}, {Name: "N", Type: schema.Numeric()},
		{Name: "O", Type: schema.Bool()}, {Name: "U", Type: schema.UUID()},
	}}
	key, err := rowcodec.NewKey(q)
	require.NoError(t, err)
	tokens, err := newTokens(q, key)
	require.NoError(t, err)
	for _, given := range []spanner.Key{
		{int64(-9223372036854775808), "ключ \x00.", []byte{0, 255}, noon.Add(123456789), civil.Date{Year: 2026, Month: 2, Day: 3},
			*big.NewRat(5, 2), true, uuid.MustParse("5e0f5d0c-0f6d-4a9e-8d5c-0e8b7b2f1a11")},
		{nil, nil, nil, nil, nil, nil, nil, nil},
		{int64(0), "", []byte{}, noon, civil.Date{Year: 1, Month: 1, Day: 1}, *big.NewRat(0, 1), false, uuid.UUID{}},
	} {
		k, err := key.Normalize(given)
		require.NoError(t, err)
		claim := newClaim()
		token, err := tokens.join(claim, k)
		require.NoError(t, err)
		require.Equal(t, claim, claimOf(token))
		gotClaim, gotKey, err := tokens.split(token)
		require.NoError(t, err)
		require.Equal(t, claim, gotClaim)
		require.Equal(t, rowcodec.ID(k), rowcodec.ID(gotKey))
		for i := range k {
			require.Equal(t, rowcodec.IsNull(k[i]), rowcodec.IsNull(gotKey[i]))
		}
	}
	none, err := tokens.join("", spanner.Key{})
	require.NoError(t, err)
	require.Empty(t, none, "what nobody has claimed has no token")
	for _, wrong := range []string{"", "abc", ".abc", "abc.!", "abc.AAAA", "abc."} {
		_, _, err := tokens.split(wrong)
		require.Error(t, err, "%q", wrong)
	}
	require.NotEqual(t, newClaim(), newClaim())
	require.LessOrEqual(t, len(newClaim()), 36, "it fits its column")
}

func TestShardsAreUsedEvenly(t *testing.T) {
	t.Parallel()
	s := plain()
	s.Shards = 16
	q := &Queue{schema: s}
	for _, name := range []string{"order-%d", "%08d", "user/1/%d"} {
		counts := make([]int, s.Shards)
		const n = 16_000
		for i := range n {
			c := q.cellOf(spanner.Key{fmt.Sprintf(name, i)}, 1)
			require.EqualValues(t, 1, c.priority)
			counts[c.shard]++
		}
		for shard, got := range counts {
			require.InDelta(t, n/len(counts), got, 150, "shard %d of keys %s", shard, name)
		}
	}
}
