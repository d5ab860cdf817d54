package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/civil"
	"cloud.google.com/go/spanner"
	"github.com/google/uuid"

	"github.com/spanqueue/spanqueue/schema"
)

// Keys are written as JSON arrays with one element a key column: ["alice",7]. NULL is null, BYTES are base64, everything
// that JSON has no type for is a string. On the command line a key of one column may be written without the array.

// formatKey writes a key of the library's.
func formatKey(key spanner.Key) string {
	elements := make([]any, len(key))
	for i, part := range key {
		switch v := part.(type) {
		case spanner.NullableValue:
			elements[i] = nil // the library uses these types for NULL only
		case []byte:
			if v != nil {
				elements[i] = base64.StdEncoding.EncodeToString(v)
			}
		case time.Time:
			elements[i] = v.UTC().Format(time.RFC3339Nano)
		case civil.Date, uuid.UUID:
			elements[i] = fmt.Sprint(v)
		case big.Rat:
			elements[i] = v.FloatString(spanner.NumericScaleDigits)
		default:
			elements[i] = v
		}
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(elements); err != nil {
		return key.String()
	}
	return strings.TrimSpace(b.String())
}

// parseKey reads a key of the queue.
func parseKey(q schema.Queue, text string) (spanner.Key, error) {
	parts := q.KeyParts()
	var elements []any
	if !strings.HasPrefix(text, "[") && len(parts) == 1 {
		elements = []any{text}
	} else {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		err := d.Decode(&elements)
		if _, more := d.Token(); err == nil && !errors.Is(more, io.EOF) {
			err = errors.New("something follows the array")
		}
		if err != nil {
			return nil, fmt.Errorf("key %q is not a JSON array such as [\"alice\",7]: %w", text, err)
		}
	}
	if len(elements) != len(parts) {
		return nil, fmt.Errorf("key %s has %d parts, the key of %s has %d", text, len(elements), q.Name, len(parts))
	}
	key := make(spanner.Key, len(parts))
	for i, part := range parts {
		column, _ := q.KeyColumn(part.Column)
		v, err := parsePart(column.Type.Kind, elements[i])
		if err != nil {
			return nil, fmt.Errorf("key %s: column %s is %s: %w", text, column.Name, column.Type, err)
		}
		key[i] = v
	}
	return key, nil
}

func parsePart(kind schema.Kind, element any) (any, error) {
	text, isText := element.(string)
	if n, ok := element.(json.Number); ok && (kind == schema.KindInt64 || kind == schema.KindNumeric) {
		text, isText = n.String(), true
	}
	switch v := element.(type) {
	case nil:
		return nil, nil
	case bool:
		if kind == schema.KindBool {
			return v, nil
		}
	}
	if !isText {
		return nil, fmt.Errorf("found %v", element)
	}
	switch kind {
	case schema.KindInt64:
		return strconv.ParseInt(text, 10, 64)
	case schema.KindBytes:
		return base64.StdEncoding.DecodeString(text)
	case schema.KindBool:
		return strconv.ParseBool(text)
	case schema.KindTimestamp:
		return time.Parse(time.RFC3339Nano, text)
	case schema.KindDate:
		return civil.ParseDate(text)
	case schema.KindUUID:
		return uuid.Parse(text)
	case schema.KindNumeric:
		if r, ok := new(big.Rat).SetString(text); ok {
			return r, nil
		}
		return nil, fmt.Errorf("%q is not a number", text)
	}
	return text, nil
}
