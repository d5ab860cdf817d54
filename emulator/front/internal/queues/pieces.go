package queues

import (
	"unicode/utf8"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// pieceOfRow bounds a message of a stream, as the emulator does with other queries: clients need not take messages of
// any size. A value that is no string is not divided.
const pieceOfRow = 1 << 20

// pieces divides a row into the messages that carry it. Only the last has the token: it completes the row.
func pieces(values []*structpb.Value, token []byte) []*spannerpb.PartialResultSet {
	var all []*spannerpb.PartialResultSet
	now := &spannerpb.PartialResultSet{}
	size := 0
	flush := func(chunked bool) {
		now.ChunkedValue = chunked
		all = append(all, now)
		now, size = &spannerpb.PartialResultSet{}, 0
	}
	for _, v := range values {
		text, isString := v.GetKind().(*structpb.Value_StringValue)
		for isString && size+len(text.StringValue) > pieceOfRow {
			n := cut(text.StringValue, pieceOfRow-size)
			if n == 0 { // no room for even one character
				if len(now.Values) == 0 {
					break
				}
				flush(false)
				continue
			}
			now.Values = append(now.Values, structpb.NewStringValue(text.StringValue[:n]))
			text = &structpb.Value_StringValue{StringValue: text.StringValue[n:]}
			flush(true)
		}
		if isString {
			v = &structpb.Value{Kind: text}
		}
		now.Values = append(now.Values, v)
		size += proto.Size(v)
	}
	now.ResumeToken = token
	return append(all, now)
}

// cut is the length of the longest prefix of at most n bytes that ends between characters.
func cut(s string, n int) int {
	if n <= 0 {
		return 0
	}
	for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	return min(n, len(s))
}
