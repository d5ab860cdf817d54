package schema

import (
	"fmt"
	"strings"

	"github.com/cloudspannerecosystem/memefish/token"
)

// Kind names a column type without its length.
type Kind string

// The kinds a column can have. The zero Kind is no type at all and is refused
// by Validate.
const (
	KindBool      Kind = "BOOL"
	KindInt64     Kind = "INT64"
	KindFloat32   Kind = "FLOAT32"
	KindFloat64   Kind = "FLOAT64"
	KindNumeric   Kind = "NUMERIC"
	KindString    Kind = "STRING"
	KindBytes     Kind = "BYTES"
	KindDate      Kind = "DATE"
	KindTimestamp Kind = "TIMESTAMP"
	KindUUID      Kind = "UUID"
	KindJSON      Kind = "JSON"
	// KindNamed is a type of the database's proto bundle: a message or an
	// enum. DDL does not say which of the two.
	KindNamed Kind = "NAMED"
)

// Max is the length of STRING(MAX) and BYTES(MAX).
const Max int64 = -1

// Longest lengths that a column may declare; from the quotas page of Spanner.
const (
	maxStringLength = 2_621_440  // characters
	maxBytesLength  = 10_485_760 // bytes
)

// Type is the type of a column. Types are comparable: two are the same type
// exactly if they are ==. The zero Type is no type.
type Type struct {
	Kind Kind
	// Length is the declared length of a STRING (characters) or BYTES (bytes),
	// or Max. It is 0 for every other kind.
	Length int64
	// Proto is the full name of a type of the proto bundle, such as
	// "shop.v1.Order". It is empty for every other kind.
	Proto string
}

// Bool is the type BOOL.
func Bool() Type { return Type{Kind: KindBool} }

// Int64 is the type INT64.
func Int64() Type { return Type{Kind: KindInt64} }

// Float32 is the type FLOAT32.
func Float32() Type { return Type{Kind: KindFloat32} }

// Float64 is the type FLOAT64.
func Float64() Type { return Type{Kind: KindFloat64} }

// Numeric is the type NUMERIC.
func Numeric() Type { return Type{Kind: KindNumeric} }

// String is the type STRING(length); length counts characters, or is Max.
func String(length int64) Type { return Type{Kind: KindString, Length: length} }

// Bytes is the type BYTES(length); length counts bytes, or is Max.
func Bytes(length int64) Type { return Type{Kind: KindBytes, Length: length} }

// Date is the type DATE.
func Date() Type { return Type{Kind: KindDate} }

// Timestamp is the type TIMESTAMP.
func Timestamp() Type { return Type{Kind: KindTimestamp} }

// UUID is the type UUID.
func UUID() Type { return Type{Kind: KindUUID} }

// JSON is the type JSON.
func JSON() Type { return Type{Kind: KindJSON} }

// Proto is a message or enum type of the database's proto bundle, by its full
// name.
func Proto(name string) Type { return Type{Kind: KindNamed, Proto: name} }

// String returns the type as DDL writes it: "STRING(36)", "BYTES(MAX)".
func (t Type) String() string {
	switch t.Kind {
	case KindString, KindBytes:
		if t.Length == Max {
			return string(t.Kind) + "(MAX)"
		}
		return fmt.Sprintf("%s(%d)", t.Kind, t.Length)
	case KindNamed:
		parts := strings.Split(t.Proto, ".")
		for i, p := range parts {
			parts[i] = quoteIdent(p)
		}
		return strings.Join(parts, ".")
	case "":
		return "(no type)"
	default:
		return string(t.Kind)
	}
}

// quoteIdent back-quotes an identifier that SQL would not read as one.
func quoteIdent(s string) string {
	if s == "" { // memefish's quoting needs one character
		return "``"
	}
	return token.QuoteSQLIdent(s)
}

// problem says what is wrong with the type itself, or "".
func (t Type) problem() string {
	longest := int64(0)
	switch t.Kind {
	case KindString:
		longest = maxStringLength
	case KindBytes:
		longest = maxBytesLength
	case KindNamed:
		if t.Length != 0 {
			return fmt.Sprintf("length %d: a proto type has no length", t.Length)
		}
		for part := range strings.SplitSeq(t.Proto, ".") {
			if why := identProblem(part); why != "" {
				return fmt.Sprintf("a proto type is named by identifiers joined by dots, but part %q %s", part, why)
			}
		}
		return ""
	case KindBool, KindInt64, KindFloat32, KindFloat64, KindNumeric, KindDate, KindTimestamp, KindUUID, KindJSON:
		if t.Length != 0 {
			return fmt.Sprintf("length %d: %s has no length", t.Length, t.Kind)
		}
	case "":
		return "no type is given"
	default:
		return "is not a known type"
	}
	if t.Proto != "" {
		return fmt.Sprintf("Proto %q: only a type of kind %s has a name", t.Proto, KindNamed)
	}
	if longest > 0 && t.Length != Max && (t.Length < 1 || t.Length > longest) {
		return fmt.Sprintf("the length must be 1 to %d, or MAX", longest)
	}
	return ""
}

// keyProblem says why the type cannot be a key column of a queue, or "".
func (t Type) keyProblem() string {
	if t.Kind == KindJSON {
		return "JSON cannot be a key: it has no order"
	}
	return ""
}

// payloadProblem says why the type cannot be a queue's payload, or "".
func (t Type) payloadProblem() string {
	switch t.Kind {
	case KindBytes, KindString, KindJSON, KindNamed:
		return ""
	}
	return "the payload must be BYTES, STRING, JSON or a proto type"
}
