package idempotency

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Fingerprint is the SHA-256 of what a caller asked for. One key with two
// fingerprints is a mistake of the caller and answered with ErrMismatch. The
// zero Fingerprint is refused.
type Fingerprint [sha256.Size]byte

// FingerprintBytes hashes an opaque payload byte for byte.
func FingerprintBytes(payload []byte) Fingerprint {
	return sha256.Sum256(payload)
}

// FingerprintJSON hashes a JSON text without regard to the order of members,
// white space and the escapes of strings, as RFC 8785 does.
//
// Numbers count as written: 1, 1.0 and 1e0 differ. The RFC's own number form
// would make 9007199254740993 and 9007199254740992 equal, and two payments of
// different amounts the same request. null and an absent member differ, so do
// lists in another order, composed and decomposed accents, and a default that
// is left out and one that is written. A repeated member is an error: readers
// do not agree which one counts.
func FingerprintJSON(text []byte) (Fingerprint, error) {
	v := jsontext.Value(bytes.Clone(text)) // Canonicalize writes into its value
	err := v.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	if err != nil {
		return Fingerprint{}, fmt.Errorf("%w: fingerprint of JSON: %w", ErrInvalid, err)
	}
	return sha256.Sum256(v), nil
}

// FingerprintOf hashes a decoded value: what encoding/json makes of it, then
// as FingerprintJSON. Unlike the text it was decoded from it has its defaults
// filled in and its unknown members dropped. A new field in the type changes
// the fingerprint of every request in flight, unless it is omitted when empty.
func FingerprintOf(v any) (Fingerprint, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return Fingerprint{}, fmt.Errorf("%w: fingerprint of %T: %w", ErrInvalid, v, err)
	}
	return FingerprintJSON(text)
}

// With adds what else belongs to the request: a method, a route, path values,
// a query. The order of the parts counts, and where one ends and the next
// begins.
func (f Fingerprint) With(parts ...string) Fingerprint {
	return hashParts(append([]string{string(f[:])}, parts...)...)
}

// String is the fingerprint in hexadecimal digits.
func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }
