package idempotencyhttp

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

const (
	keyHeader = "Idempotency-Key"
	maxKey    = 255
)

var errNoKey = errors.New("the request has no " + keyHeader + " header")

// parseKey returns the request's key. The draft makes the field a String of
// Structured Fields (RFC 9651), in quotes. Most clients send it bare, so a bare
// run of visible characters is taken as well; "k" and k are the same key.
func parseKey(h http.Header) (string, error) {
	values := h.Values(keyHeader)
	if len(values) == 0 {
		return "", errNoKey
	}
	if len(values) > 1 {
		return "", fmt.Errorf("the request has %d %s headers, it must have one", len(values), keyHeader)
	}
	field := strings.Trim(values[0], " \t")
	key, err := unquote(field)
	switch {
	case err != nil:
		return "", fmt.Errorf("the %s header %w", keyHeader, err)
	case key == "":
		return "", fmt.Errorf("the %s header is empty", keyHeader)
	case len(key) > maxKey:
		return "", fmt.Errorf("the %s header has %d characters, it may have %d", keyHeader, len(key), maxKey)
	}
	return key, nil
}

func unquote(field string) (string, error) {
	if !strings.HasPrefix(field, `"`) {
		// A comma would be a list, a semicolon parameters, a quote a mistake.
		if strings.ContainsFunc(field, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`",;\`, c) }) {
			return "", errors.New("must be a string in quotes, or visible ASCII characters without quotes, commas, semicolons and backslashes")
		}
		return field, nil
	}
	var key strings.Builder
	for i := 1; i < len(field); i++ {
		switch c := field[i]; {
		case c == '"' && i == len(field)-1:
			return key.String(), nil
		case c == '"':
			return "", errors.New("has something behind the string; parameters are not defined for it")
		case c == '\\':
			i++
			if i == len(field) || field[i] != '"' && field[i] != '\\' {
				return "", errors.New(`has a backslash that is before neither " nor \`)
			}
			key.WriteByte(field[i])
		case c < ' ' || c > '~':
			return "", errors.New("has a character that is not printable ASCII")
		default:
			key.WriteByte(c)
		}
	}
	return "", errors.New("has a string without an end")
}
