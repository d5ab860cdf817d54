package rowcodec

import (
	"bytes"
	"encoding/base64"
	"fmt"

	"cloud.google.com/go/spanner"
	sppb "cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spanqueue/spanqueue/schema"
	"google.golang.org/protobuf/types/known/structpb"
)

// Payload reads and writes the payload column of one queue.
type Payload struct {
	columnType schema.Type
}

// NewPayload makes the codec of a payload column's type.
func NewPayload(t schema.Type) Payload { return Payload{columnType: t} }

// Check refuses what the column could not store, or would store as something else.
func (p Payload) Check(b []byte) error {
	switch p.columnType.Kind {
	case schema.KindString:
		return fits("the payload", p.columnType, string(b))
	case schema.KindJSON:
		if !jsontext.Value(b).IsValid() {
			return fmt.Errorf("the payload column is JSON, the given payload is not valid JSON (a repeated member is not valid either)")
		}
		if err := checkNumbers(b); err != nil {
			return err
		}
	}
	return fits("the payload", p.columnType, b)
}

// Encode returns the payload as Google's client wants it. Nil is an empty payload, never NULL.
func (p Payload) Encode(b []byte) any {
	switch p.columnType.Kind {
	case schema.KindString:
		return string(b)
	case schema.KindJSON:
		// spanner.NullJSON would go through the client's JSON decoder; the text itself keeps its digits.
		return spanner.GenericColumnValue{
			Type:  &sppb.Type{Code: sppb.TypeCode_JSON},
			Value: structpb.NewStringValue(string(b)),
		}
	}
	if b == nil {
		return []byte{}
	}
	return b
}

// Parameter returns the SQL expression of the payload, given as the parameter of that name.
func (p Payload) Parameter(name string) string {
	if p.columnType.Kind == schema.KindNamed {
		return fmt.Sprintf("CAST(@%s AS %s)", name, p.columnType)
	}
	return "@" + name
}

// Read takes the payload from the column at index i of a row.
func (p Payload) Read(row *spanner.Row, i int) ([]byte, error) {
	var col spanner.GenericColumnValue
	if err := row.Column(i, &col); err != nil {
		return nil, err
	}
	text, ok := col.Value.GetKind().(*structpb.Value_StringValue)
	if !ok {
		return nil, fmt.Errorf("the payload column holds %v, not a value", col.Value)
	}
	switch p.columnType.Kind {
	case schema.KindString, schema.KindJSON:
		return []byte(text.StringValue), nil
	}
	b, err := base64.StdEncoding.DecodeString(text.StringValue)
	if err != nil {
		return nil, fmt.Errorf("the payload column does not hold base64: %w", err)
	}
	return b, nil
}

// Equal says whether the database would hold the two payloads for one value: byte for byte, but for JSON, which it
// stores in a form of its own.
func (p Payload) Equal(a, b []byte) bool {
	if p.columnType.Kind != schema.KindJSON {
		return bytes.Equal(a, b)
	}
	x, y := jsontext.Value(bytes.Clone(a)), jsontext.Value(bytes.Clone(b))
	keepDigits := jsontext.CanonicalizeRawInts(false)
	if x.Canonicalize(keepDigits) != nil || y.Canonicalize(keepDigits) != nil {
		return bytes.Equal(a, b)
	}
	return bytes.Equal(x, y)
}
