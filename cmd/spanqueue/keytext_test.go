package main

import (
	"fmt"
	"math/big"
	"testing"
	"time"

	"cloud.google.com/go/civil"
	"cloud.google.com/go/spanner"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/schema"
)

func TestKeysAreWrittenAsTheyAreRead(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	id := uuid.MustParse("5e0f5d0c-0f6d-4a9e-8d5c-0e8b7b2f1a11")
	for _, c := range []struct {
		columnType schema.Type
		part       any
		text       string
	}{
		{schema.String(40), `a"b@<c>`, `["a\"b@<c>"]`},
		{schema.Int64(), int64(-1 << 63), `[-9223372036854775808]`},
		{schema.Bytes(40), []byte{0, 255}, `["AP8="]`},
		{schema.Bytes(40), []byte(nil), `[null]`},
		{schema.Int64(), spanner.NullInt64{}, `[null]`},
		{schema.Bool(), true, `[true]`},
		{schema.Timestamp(), at, `["2026-01-02T03:04:05.000000678Z"]`},
		{schema.Date(), civil.Date{Year: 2026, Month: 2, Day: 3}, `["2026-02-03"]`},
		{schema.UUID(), id, `["5e0f5d0c-0f6d-4a9e-8d5c-0e8b7b2f1a11"]`},
		{schema.Numeric(), *big.NewRat(5, 2), `["2.500000000"]`},
	} {
		q := schema.Queue{Name: "Q", KeyColumns: []schema.Column{{Name: "Id", Type: c.columnType}}}
		require.Equal(t, c.text, formatKey(spanner.Key{c.part}))
		key, err := parseKey(q, c.text)
		require.NoError(t, err)
		switch want := c.part.(type) {
		case big.Rat:
			require.Zero(t, want.Cmp(key[0].(*big.Rat)))
		case spanner.NullableValue:
			require.Nil(t, key[0])
		case []byte:
			if want == nil {
				require.Nil(t, key[0])
			} else {
				require.Equal(t, want, key[0])
			}
		default:
			require.Equal(t, want, key[0])
		}
		_, _, err = parseLetter(q, c.text+"@"+formatTime(at))
		require.NoError(t, err)
	}
	// A key of one column needs no array, whatever is in it.
	q := schema.Queue{Name: "Q", KeyColumns: []schema.Column{{Name: "Id", Type: schema.String(40)}}}
	for _, text := range []string{"m1", "alice@example.com", "null", "5", ""} {
		key, deadAt, err := parseLetter(q, text)
		require.NoError(t, err)
		require.Equal(t, spanner.Key{text}, key)
		require.Zero(t, deadAt)
		key, deadAt, err = parseLetter(q, fmt.Sprintf("%s@%s", text, formatTime(at)))
		require.NoError(t, err)
		require.Equal(t, spanner.Key{text}, key)
		require.Equal(t, at, deadAt)
	}
	for _, text := range []string{`["a"]]`, `["a"] x`, `[1]`, `["a","b"]`, `[[]]`} {
		_, err := parseKey(q, text)
		require.Error(t, err, text)
	}
}
