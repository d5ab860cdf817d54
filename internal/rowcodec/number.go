package rowcodec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// checkNumbers refuses JSON, which must be valid, with a number that the database would store as another one: it keeps
// integers from -2^63 to 2^64-1 and doubles, and rounds what is neither.
func checkNumbers(text []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	for {
		token, err := d.ReadToken()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case token.Kind() == '0' && !keepsValue(token.String()):
			return fmt.Errorf("the payload column is JSON, and the number %.40s would be rounded there: send it as a string", token.String())
		}
	}
}

// keepsValue reports whether a JSON number has the same value after the database has read it.
func keepsValue(literal string) bool {
	if !strings.ContainsAny(literal, ".eE") {
		if _, err := strconv.ParseInt(literal, 10, 64); err == nil {
			return true
		}
		_, err := strconv.ParseUint(literal, 10, 64)
		return err == nil
	}
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil { // too large
		return false
	}
	digits, exponent, ok := decimal(literal)
	stored, storedExponent, _ := decimal(strconv.FormatFloat(f, 'e', -1, 64))
	return ok && digits == stored && exponent == storedExponent
}

// decimal takes a number apart, so that equal numbers have equal parts: its value is 0.digits times ten to the exponent,
// and digits neither begins nor ends with a zero. The sign is left out.
func decimal(literal string) (digits string, exponent int, ok bool) {
	mantissa, power := strings.TrimPrefix(strings.ToLower(literal), "-"), "0"
	if m, p, found := strings.Cut(mantissa, "e"); found {
		mantissa, power = m, p
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	if digits == "" { // zero, whatever the exponent
		return "", 0, true
	}
	exponent, err := strconv.Atoi(power)
	if err != nil {
		return "", 0, false
	}
	exponent += len(whole) - (len(whole+fraction) - len(digits))
	return strings.TrimRight(digits, "0"), exponent, true
}

// maxNumeric is the first whole number of billionths that NUMERIC has no room for: it has 29 digits before the point and
// 9 after it.
var maxNumeric = new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil)

// checkNumeric refuses what NUMERIC would round or has no room for.
func checkNumeric(r *big.Rat) error {
	billionths := new(big.Rat).Mul(r, new(big.Rat).SetInt64(1_000_000_000))
	if !billionths.IsInt() || billionths.Num().CmpAbs(maxNumeric) >= 0 {
		return fmt.Errorf("NUMERIC keeps 29 digits before the point and 9 after it, the given value is %.60s", r.RatString())
	}
	return nil
}
