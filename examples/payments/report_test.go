package main

import (
	"bytes"
	"go/build"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/examples/payments/gateway"
)

// goodResult is a run with all its faults, and one of each.
func goodResult() *result {
	one := map[string]int{"a": 1}
	bookings := []*booking{{order: order{Trip: "a", Cents: 100}}}
	return &result{
		bookings: bookings,
		verdict: judge(bookings, ledger{rides: one, charges: one, receipts: one, mails: one, noted: one,
			cents: map[string]int64{"a": 100}}),
		app:     appFigures{requests: 9, doubleClicks: 1, timeouts: 1, retries: 1, fresh: 1, replays: 1, conflicts: 1, failures: 1},
		gateway: gateway.Figures{Calls: 5, Repeated: 1, Before: 1, After: 1, Lost: 1, Away: make([]time.Time, 1)},
		charges: 1, deliveries: 2, mails: 1, aborts: 1, lost: 1, outage: outage,
	}
}

// The exit code is 0 when there is one of each and the run has met what it is
// about, and 1 otherwise.
func TestReportsExitCode(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.Equal(t, exitGood, goodResult().report(&out), out.String())
	require.Equal(t, "1 rides, 1 charges, 1 mails: one each", lastLine(out.String()))
	for want, spoil := range map[string]func(*result){
		"this is not one of each":             func(r *result) { r.verdict.tallies[1].twice++ },
		"WRONG: there were no replays":        func(r *result) { r.app.replays = 0 },
		"WRONG: there were no calls beyond":   func(r *result) { r.gateway.Calls = r.charges },
		"WRONG: there were no answers lost":   func(r *result) { r.gateway.Lost = 0 },
		"WRONG: there were no commits unansw": func(r *result) { r.lost = 0 },
		"more than 192: a storm":              func(r *result) { r.gateway.Away = make([]time.Time, 193) },
	} {
		r := goodResult()
		spoil(r)
		out.Reset()
		require.Equal(t, exitBad, r.report(&out), want)
		require.Contains(t, out.String(), want)
		require.Equal(t, "this is not one of each", lastLine(out.String()))
	}
}

func TestUnprotectedReportsExitCode(t *testing.T) {
	t.Parallel()
	r := goodResult()
	var out bytes.Buffer
	require.Equal(t, exitBad, r.reportUnprotected(&out), "it is to show double charges")
	r.verdict.tallies[1].twice = 3
	require.Equal(t, exitGood, r.reportUnprotected(&out))
	require.Contains(t, out.String(), "3 double charges")
}

// The two servers outside stand for somebody else's.
func TestServersOutsideImportNothingOfOurs(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"gateway", "mailserver"} {
		p, err := build.ImportDir(dir, 0)
		require.NoError(t, err)
		require.NotEmpty(t, p.Imports)
		for _, path := range p.Imports {
			require.False(t, strings.Contains(path, "."), "%s imports %s, which is not of the standard library", dir, path)
		}
	}
}
