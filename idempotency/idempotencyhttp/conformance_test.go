package idempotencyhttp_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// conformance is the table of answers: a case for each of its rows. A case is
// run in each mode and may say at its top that it is none of that mode's.
var conformance = map[string]func(*testing.T, mode){
	"first":              testFirst,
	"replay":             testReplay,
	"at-once":            testAtOnce,
	"wait-over":          testWaitOver,
	"key-missing":        testKeyMissing,
	"key-invalid":        testKeyInvalid,
	"key-optional":       testKeyOptional,
	"key-quoted":         testKeyQuoted,
	"other-request":      testOtherRequest,
	"same-json":          testSameJSON,
	"other-scope":        testOtherScope,
	"not-allowed":        testNotAllowed,
	"method":             testMethod,
	"request-too-large":  testRequestTooLarge,
	"request-unreadable": testRequestUnreadable,
	"nothing":            testNothing,
	"not-kept":           testNotKept,
	"refused":            testRefused,
	"problem":            testProblem,
	"error":              testError,
	"panic":              testPanic,
	"stream":             testStream,
	"too-large":          testTooLarge,
	"header-invalid":     testHeaderInvalid,
	"body-read":          testBodyRead,
	"body-dropped":       testBodyDropped,
	"commit-lost":        testCommitLost,
	"commit-not-landed":  testCommitNotLanded,
	"unresolved":         testUnresolved,
	"unavailable":        testUnavailable,
	"uncertain":          testUncertain,
	"expired":            testExpired,
	"client-gone":        testClientGone,
	"poll":               testPoll,
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, test := range conformance {
		for _, m := range modes {
			t.Run(name+"/"+string(m), func(t *testing.T) {
				t.Parallel()
				test(t, m)
			})
		}
	}
}

var rowName = regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|")

// The page's table and the cases are the same list.
func TestEveryRowOfThePageHasACase(t *testing.T) {
	t.Parallel()
	var rows []string
	for _, found := range rowName.FindAllStringSubmatch(readPage(t), -1) {
		rows = append(rows, found[1])
	}
	slices.Sort(rows)
	require.Equal(t, slices.Sorted(maps.Keys(conformance)), rows)
}

func readPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/idempotency-http.md")
	require.NoError(t, err)
	return string(text)
}
