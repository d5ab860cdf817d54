package rowcodec

import (
	"fmt"
	"math/big"
	"time"
	"unicode/utf8"

	"cloud.google.com/go/civil"
	"github.com/spanqueue/spanqueue/schema"
)

const (
	// maxValue is the largest value in bytes that Spanner stores in one cell, and the length that BYTES(MAX) stands for.
	maxValue = 10 << 20
	// maxText is the length in characters that STRING(MAX) stands for.
	maxText = 2_621_440
	// maxKey is the most bytes of a key. Spanner takes 8,192, and the index of a queue table and the table of the dead
	// letters add to the key: one that could be sent and not be buried would come back for ever.
	maxKey = 8000
)

// fits refuses a value that its column would not store. what names the column in the error.
func fits(what string, t schema.Type, value any) error {
	switch v := value.(type) {
	case string:
		if !utf8.ValidString(v) {
			return fmt.Errorf("%s is %s, the given value is not valid UTF-8", what, t)
		}
		n := utf8.RuneCountInString(v)
		if t.Length != schema.Max && int64(n) > t.Length {
			return fmt.Errorf("%s is %s, the given value has %d characters", what, t, n)
		}
		if n > maxText {
			return fmt.Errorf("%s is %s, which takes %d characters at most, the given value has %d", what, t, maxText, n)
		}
		return fitsCell(what, len(v))
	case []byte:
		if t.Kind == schema.KindBytes && t.Length != schema.Max && int64(len(v)) > t.Length {
			return fmt.Errorf("%s is %s, the given value has %d bytes", what, t, len(v))
		}
		return fitsCell(what, len(v))
	case time.Time:
		if y := v.Year(); y < 1 || y > 9999 {
			return fmt.Errorf("%s takes the years 1 to 9999, the given value is in the year %d", what, y)
		}
	case civil.Date:
		if !v.IsValid() || v.Year < 1 || v.Year > 9999 {
			return fmt.Errorf("%s takes days of the years 1 to 9999, the given value is %v", what, v)
		}
	case big.Rat:
		if err := checkNumeric(&v); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

// partSize is about how many bytes the part takes of a key.
func partSize(part any) int {
	switch v := part.(type) {
	case string:
		return len(v)
	case []byte:
		return len(v)
	}
	return 24 // a NUMERIC is the largest of the others
}

func fitsCell(what string, size int) error {
	if size > maxValue {
		return fmt.Errorf("%s takes %d bytes at most, the given value has %d", what, maxValue, size)
	}
	return nil
}
