package rowcodec

import (
	"fmt"
	"unicode/utf8"

	"github.com/spanqueue/spanqueue/schema"
)

// maxValue is the largest value in bytes that Spanner stores in one cell, and the length that MAX stands for.
const maxValue = 10 << 20

// fits refuses a value that its column would not store. what names the column in the error.
func fits(what string, t schema.Type, value any) error {
	switch v := value.(type) {
	case string:
		if !utf8.ValidString(v) {
			return fmt.Errorf("%s is %s, the given value is not valid UTF-8", what, t)
		}
		if n := utf8.RuneCountInString(v); t.Length != schema.Max && int64(n) > t.Length {
			return fmt.Errorf("%s is %s, the given value has %d characters", what, t, n)
		}
		return fitsCell(what, len(v))
	case []byte:
		if t.Kind == schema.KindBytes && t.Length != schema.Max && int64(len(v)) > t.Length {
			return fmt.Errorf("%s is %s, the given value has %d bytes", what, t, len(v))
		}
		return fitsCell(what, len(v))
	}
	return nil
}

func fitsCell(what string, size int) error {
	if size > maxValue {
		return fmt.Errorf("%s takes %d bytes at most, the given value has %d", what, maxValue, size)
	}
	return nil
}
