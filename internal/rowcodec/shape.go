package rowcodec

import (
	"fmt"
	"strings"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/schema"
)

// Key reads and writes the key of one queue: its columns in the order of the primary key.
type Key struct {
	columns []schema.Column
}

// NewKey makes the codec of a queue's key, or says which column it could not serve.
func NewKey(q schema.Queue) (Key, error) {
	var columns []schema.Column
	for _, part := range q.KeyParts() {
		c, ok := q.KeyColumn(part.Column)
		if !ok {
			return Key{}, fmt.Errorf("the primary key names column %s, which the queue does not have", part.Column)
		}
		if _, ok := keyTypes[c.Type.Kind]; !ok {
			return Key{}, fmt.Errorf("key column %s has type %s: a key here is made of INT64, STRING, BYTES, BOOL, TIMESTAMP, DATE, NUMERIC and UUID",
				c.Name, c.Type)
		}
		if c.Generated != "" {
			return Key{}, fmt.Errorf("key column %s is generated from (%s): a sender could not name its message", c.Name, c.Generated)
		}
		columns = append(columns, c)
	}
	return Key{columns: columns}, nil
}

// Columns returns the key columns' names.
func (k Key) Columns() []string {
	names := make([]string, len(k.columns))
	for i, c := range k.columns {
		names[i] = c.Name
	}
	return names
}

// Normalize checks a key of the caller's and returns it with the types of this package.
func (k Key) Normalize(key spanner.Key) (spanner.Key, error) {
	if len(key) != len(k.columns) {
		return nil, fmt.Errorf("the key has %d parts, the queue's key has %d (%s)",
			len(key), len(k.columns), strings.Join(k.Columns(), ", "))
	}
	out, size := make(spanner.Key, len(key)), 0
	for i, part := range key {
		c := k.columns[i]
		t := keyTypes[c.Type.Kind]
		if part == nil {
			part = t.null
		}
		v, ok := t.encode(part)
		if !ok {
			return nil, fmt.Errorf("key column %s is %s, the given part is a %T", c.Name, c.Type, part)
		}
		if IsNull(v) && c.NotNull {
			return nil, fmt.Errorf("key column %s is NOT NULL, the given part is NULL", c.Name)
		}
		if err := fits("key column "+c.Name, c.Type, v); err != nil {
			return nil, err
		}
		out[i] = v
		size += partSize(v)
	}
	if size > maxKey {
		return nil, fmt.Errorf("the key takes %d bytes at most, the given one has %d", maxKey, size)
	}
	return out, nil
}

// Read takes the key from the first columns of a row, which must have been selected in the order of Columns.
func (k Key) Read(row *spanner.Row) (spanner.Key, error) {
	key := make(spanner.Key, len(k.columns))
	for i, c := range k.columns {
		var col spanner.GenericColumnValue
		if err := row.Column(i, &col); err != nil {
			return nil, err
		}
		part, err := keyTypes[c.Type.Kind].decode(col)
		if err != nil {
			return nil, fmt.Errorf("key column %s: %w", c.Name, err)
		}
		key[i] = part
	}
	return key, nil
}

// ID returns a string that is equal for equal keys of one queue, and for no others.
func ID(key spanner.Key) string { return key.String() }
