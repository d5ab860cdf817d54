package table

import (
	"encoding/base64"
	"fmt"
	"strings"

	"cloud.google.com/go/spanner"
	sppb "cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/google/uuid"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
	"github.com/spanqueue/spanqueue/schema"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// A lease's token is the claim that granted it, which stands in the row, and the key, so that a renewal by token finds its
// row without an index over tokens that every claim would have to write. A claim takes many messages under one token.

// newClaim draws the token of a claim.
func newClaim() string {
	id := uuid.New()
	return base64.RawURLEncoding.EncodeToString(id[:])
}

// tokens writes and reads the tokens of one queue.
type tokens struct {
	key     rowcodec.Key
	columns []string
	types   []*sppb.Type
}

var typeCodes = map[schema.Kind]sppb.TypeCode{
	schema.KindInt64:     sppb.TypeCode_INT64,
	schema.KindString:    sppb.TypeCode_STRING,
	schema.KindBytes:     sppb.TypeCode_BYTES,
	schema.KindBool:      sppb.TypeCode_BOOL,
	schema.KindTimestamp: sppb.TypeCode_TIMESTAMP,
	schema.KindDate:      sppb.TypeCode_DATE,
	schema.KindNumeric:   sppb.TypeCode_NUMERIC,
	schema.KindUUID:      sppb.TypeCode_UUID,
}

func newTokens(q schema.Queue, key rowcodec.Key) (tokens, error) {
	t := tokens{key: key, columns: key.Columns()}
	for _, name := range t.columns {
		c, _ := q.KeyColumn(name)
		code, ok := typeCodes[c.Type.Kind]
		if !ok {
			return tokens{}, fmt.Errorf("key column %s has type %s, which no token can hold", name, c.Type)
		}
		t.types = append(t.types, &sppb.Type{Code: code})
	}
	return t, nil
}

const tokenSeparator = "."

// join makes the token of a message that was claimed. A message that nobody has claimed has none.
func (t tokens) join(claim string, key spanner.Key) (string, error) {
	if claim == "" {
		return "", nil
	}
	row, err := spanner.NewRow(t.columns, key)
	if err != nil {
		return "", err
	}
	list := &structpb.ListValue{Values: make([]*structpb.Value, len(key))}
	for i := range key {
		var v spanner.GenericColumnValue
		if err := row.Column(i, &v); err != nil {
			return "", err
		}
		list.Values[i] = v.Value
	}
	b, err := proto.Marshal(list)
	if err != nil {
		return "", err
	}
	return claim + tokenSeparator + base64.RawURLEncoding.EncodeToString(b), nil
}

// claimOf returns the part of a token that stands in the row.
func claimOf(token string) string {
	claim, _, _ := strings.Cut(token, tokenSeparator)
	return claim
}

// split is the inverse of join.
func (t tokens) split(token string) (claim string, key spanner.Key, err error) {
	claim, text, ok := strings.Cut(token, tokenSeparator)
	if !ok || claim == "" {
		return "", nil, fmt.Errorf("not a token of a queue table")
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return "", nil, err
	}
	var list structpb.ListValue
	if err := proto.Unmarshal(b, &list); err != nil {
		return "", nil, err
	}
	if len(list.Values) != len(t.types) {
		return "", nil, fmt.Errorf("it is of a key with %d parts, this queue's has %d", len(list.Values), len(t.types))
	}
	values := make([]any, len(list.Values))
	for i, v := range list.Values {
		values[i] = spanner.GenericColumnValue{Type: t.types[i], Value: v}
	}
	row, err := spanner.NewRow(t.columns, values)
	if err != nil {
		return "", nil, err
	}
	key, err = t.key.Read(row)
	return claim, key, err
}
