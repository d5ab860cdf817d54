package rowcodec

import (
	"math/big"
	"time"

	"cloud.google.com/go/civil"
	"cloud.google.com/go/spanner"
	"github.com/google/uuid"
	"github.com/spanqueue/spanqueue/schema"
)

// keyType reads and checks the values of one column type.
type keyType struct {
	decode func(spanner.GenericColumnValue) (any, error)
	encode func(any) (any, bool)
	null   any
}

// keyTypes holds the types that can be part of a queue's key. FLOAT64 and FLOAT32 are not among them: a NaN never equals
// itself and a printed float may not find its row again.
var keyTypes = map[schema.Kind]keyType{
	schema.KindInt64:     {decodeNull(func(v spanner.NullInt64) any { return v.Int64 }), encodeInt, spanner.NullInt64{}},
	schema.KindString:    {decodeNull(func(v spanner.NullString) any { return v.StringVal }), encodeString, spanner.NullString{}},
	schema.KindBool:      {decodeNull(func(v spanner.NullBool) any { return v.Bool }), encodeBool, spanner.NullBool{}},
	schema.KindTimestamp: {decodeNull(func(v spanner.NullTime) any { return v.Time }), encodeTime, spanner.NullTime{}},
	schema.KindDate:      {decodeNull(func(v spanner.NullDate) any { return v.Date }), encodeDate, spanner.NullDate{}},
	schema.KindNumeric:   {decodeNull(func(v spanner.NullNumeric) any { return v.Numeric }), encodeNumeric, spanner.NullNumeric{}},
	schema.KindUUID:      {decodeNull(func(v spanner.NullUUID) any { return v.UUID }), encodeUUID, spanner.NullUUID{}},
	schema.KindBytes:     {decodeBytes, encodeBytes, []byte(nil)},
}

// decodeNull makes the decoder of a type with a Null form: the value when it is there, the Null form itself otherwise.
func decodeNull[N spanner.NullableValue](value func(N) any) func(spanner.GenericColumnValue) (any, error) {
	return func(col spanner.GenericColumnValue) (any, error) {
		var v N
		if err := col.Decode(&v); err != nil {
			return nil, err
		}
		if v.IsNull() {
			return v, nil
		}
		return value(v), nil
	}
}

func decodeBytes(col spanner.GenericColumnValue) (any, error) {
	var v []byte
	err := col.Decode(&v)
	return v, err
}

func encodeInt(v any) (any, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case int:
		return int64(v), true
	case int32:
		return int64(v), true
	case int16:
		return int64(v), true
	case int8:
		return int64(v), true
	case uint32:
		return int64(v), true
	case uint16:
		return int64(v), true
	case uint8:
		return int64(v), true
	case spanner.NullInt64:
		return orNull(v, v.Int64), true
	}
	return nil, false
}

func encodeString(v any) (any, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case spanner.NullString:
		return orNull(v, v.StringVal), true
	}
	return nil, false
}

func encodeBool(v any) (any, bool) {
	switch v := v.(type) {
	case bool:
		return v, true
	case spanner.NullBool:
		return orNull(v, v.Bool), true
	}
	return nil, false
}

func encodeBytes(v any) (any, bool) {
	b, ok := v.([]byte)
	return b, ok
}

func encodeTime(v any) (any, bool) {
	switch v := v.(type) {
	case time.Time:
		return v.UTC(), true // equal times must be equal keys, wherever their clocks stand
	case spanner.NullTime:
		return orNull(v, v.Time.UTC()), true
	}
	return nil, false
}

func encodeDate(v any) (any, bool) {
	switch v := v.(type) {
	case civil.Date:
		return v, true
	case spanner.NullDate:
		return orNull(v, v.Date), true
	}
	return nil, false
}

func encodeNumeric(v any) (any, bool) {
	switch v := v.(type) {
	case big.Rat:
		return v, true
	case *big.Rat:
		if v == nil {
			return spanner.NullNumeric{}, true
		}
		return *v, true
	case spanner.NullNumeric:
		return orNull(v, v.Numeric), true
	}
	return nil, false
}

func encodeUUID(v any) (any, bool) {
	switch v := v.(type) {
	case uuid.UUID:
		return v, true
	case spanner.NullUUID:
		return orNull(v, v.UUID), true
	}
	return nil, false
}

func orNull(n spanner.NullableValue, value any) any {
	if n.IsNull() {
		return n
	}
	return value
}

// IsNull reports whether a normalised key part is NULL.
func IsNull(part any) bool {
	switch v := part.(type) {
	case spanner.NullableValue:
		return v.IsNull()
	case []byte:
		return v == nil
	}
	return false
}
