package idempotency

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"log/slog"
	"unicode/utf8"

	"cloud.google.com/go/spanner"

	"github.com/spanqueue/spanqueue/schema"
)

// Bounds of an operation's parts, in characters.
const (
	maxScope = 128
	maxName  = 128
	maxKey   = 255
)

// Operation names one intended operation. Two calls with equal operations mean
// the same one; a difference in any part, also of case, makes two.
//
// Scope and Key come from callers and may be secrets: String, %v, %+v, %#v and
// slog show a short hash in their place.
type Operation struct {
	// Scope is the authenticated caller, such as a tenant or an account: 1 to
	// 128 characters. It must never be taken from the request unchecked, or
	// one caller could read the results of another.
	Scope string
	// Name is what is done, such as "charge", chosen by code: 1 to 128
	// characters. It is a label of the figures.
	Name string
	// Key is the caller's own name for this one operation: 1 to 255
	// characters.
	Key string
}

func (o Operation) validate() error {
	for _, part := range []struct {
		name, value string
		bound       int
	}{{"Scope", o.Scope, maxScope}, {"Name", o.Name, maxName}, {"Key", o.Key, maxKey}} {
		n := utf8.RuneCountInString(part.value)
		switch {
		case n == 0:
			return fmt.Errorf("%w: %s is empty; it needs 1 to %d characters", ErrInvalid, part.name, part.bound)
		case n > part.bound:
			return fmt.Errorf("%w: %s has %d characters; it may have 1 to %d", ErrInvalid, part.name, n, part.bound)
		case !utf8.ValidString(part.value):
			return fmt.Errorf("%w: %s is not valid UTF-8, which the database's STRING needs", ErrInvalid, part.name)
		}
	}
	return nil
}

// storedKey is the primary key of the operation's record. It is the only
// function that builds one: what is stored, looked up and deleted cannot
// differ. The parts stay apart, so no separator can make two operations one.
func (o Operation) storedKey() spanner.Key {
	return spanner.Key{o.Scope, o.Name, o.Key}
}

// shard spreads the index of completion times, which would otherwise grow at
// one end only.
func (o Operation) shard() int64 {
	sum := o.hash("shard")
	return int64(binary.BigEndian.Uint32(sum[:4]) % schema.OperationShards)
}

// derivedKey is the key that an outside call of the named step carries. It is
// the same in every run of the operation and tells the other side nothing
// about scope and key.
func (o Operation) derivedKey(step string) string {
	sum := o.hash("outside call", step)
	return hex.EncodeToString(sum[:])
}

func (o Operation) hash(purpose string, more ...string) [sha256.Size]byte {
	return hashParts(append([]string{"spanqueue/idempotency", purpose, o.Scope, o.Name, o.Key}, more...)...)
}

// hashParts hashes strings so that no two lists of parts hash the same bytes:
// each part is preceded by its length.
func hashParts(parts ...string) [sha256.Size]byte {
	h := sha256.New()
	var length [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(p)))
		h.Write(length[:])
		h.Write([]byte(p))
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// String shows the name, and scope and key as short hashes: enough to find
// equal ones in a log, too little to use them.
func (o Operation) String() string {
	return fmt.Sprintf("%s(scope #%s, key #%s)", o.Name, shortHash(o.Scope), shortHash(o.Key))
}

// GoString keeps %#v from showing what String hides.
func (o Operation) GoString() string { return "idempotency.Operation{" + o.String() + "}" }

// LogValue shows in slog what String shows.
func (o Operation) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("name", o.Name),
		slog.String("scope_hash", shortHash(o.Scope)),
		slog.String("key_hash", shortHash(o.Key)),
	)
}

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:4])
}
