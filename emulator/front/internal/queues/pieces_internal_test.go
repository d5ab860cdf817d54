package queues

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// joined puts messages together as clients do.
func joined(t testing.TB, parts []*spannerpb.PartialResultSet) []*structpb.Value {
	t.Helper()
	var row []*structpb.Value
	goesOn := false
	for i, p := range parts {
		values := p.GetValues()
		if goesOn {
			require.NotEmpty(t, values)
			last := row[len(row)-1]
			row[len(row)-1] = structpb.NewStringValue(last.GetStringValue() + values[0].GetStringValue())
			values = values[1:]
		}
		row = append(row, values...)
		goesOn = p.GetChunkedValue()
		require.Equal(t, i == len(parts)-1, len(p.GetResumeToken()) > 0, "the token completes the row")
	}
	require.False(t, goesOn)
	return row
}

func TestPieces(t *testing.T) {
	t.Parallel()
	list := structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue(strings.Repeat("x", 2*pieceOfRow))}})
	for name, row := range map[string][]*structpb.Value{
		"small":          {structpb.NewStringValue("a"), structpb.NewNullValue(), structpb.NewBoolValue(true)},
		"one":            {structpb.NewStringValue(strings.Repeat("x", 10*pieceOfRow+1))},
		"exact":          {structpb.NewStringValue(strings.Repeat("x", pieceOfRow)), structpb.NewStringValue(strings.Repeat("y", pieceOfRow)), structpb.NewStringValue("z")},
		"characters":     {structpb.NewStringValue("x" + strings.Repeat("\U0001F600", pieceOfRow))},
		"several":        {structpb.NewStringValue(strings.Repeat("x", pieceOfRow-1)), structpb.NewStringValue(strings.Repeat("\U0001F600", 10)), structpb.NewNumberValue(1), structpb.NewStringValue("")},
		"a list":         {list, structpb.NewStringValue("y"), list},
		"nothing in it":  {structpb.NewStringValue("")},
		"not any column": nil,
	} {
		parts := pieces(row, []byte("token"))
		require.True(t, proto.Equal(&structpb.ListValue{Values: row}, &structpb.ListValue{Values: joined(t, parts)}), name)
		for _, p := range parts {
			for _, v := range p.GetValues() {
				require.True(t, utf8.ValidString(v.GetStringValue()), name)
			}
			if name != "a list" {
				require.Less(t, proto.Size(p), pieceOfRow+1<<10, name)
			}
		}
	}
	for range 100 {
		var row []*structpb.Value
		for range rand.IntN(6) {
			row = append(row, structpb.NewStringValue(strings.Repeat([]string{"x", "é", "\U0001F600"}[rand.IntN(3)], rand.IntN(pieceOfRow))))
		}
		require.True(t, proto.Equal(&structpb.ListValue{Values: row}, &structpb.ListValue{Values: joined(t, pieces(row, []byte("t")))}))
	}
}
