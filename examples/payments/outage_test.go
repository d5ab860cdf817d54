package main

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The gateway is away for longer than the customers' patience lasts. Each of
// them makes a bounded number of calls, no layer between multiplies them, and
// they come back at different times. When it is there again the same requests
// go on: one ride and one charge each.
func TestWindowLoadDuringAnOutageOfTheGateway(t *testing.T) {
	t.Parallel()
	const customers, attempts = 40, 4
	s := newStage(t, func(h http.Handler) http.Handler { return h })
	url := s.service(operations, quiet)
	bookings := newBookings(customers, 7)
	for _, b := range bookings {
		b.doubleClick, b.patience = false, patient
	}
	book := func(a *app) (errs []error) {
		errs = make([]error, customers)
		var crowd sync.WaitGroup
		for i, b := range bookings {
			crowd.Go(func() { _, errs[i] = a.book(t.Context(), b) })
		}
		crowd.Wait()
		return errs
	}

	s.gateway.SetAway(true)
	during := s.app(url, backoff{attempts: attempts, min: 500 * time.Millisecond, max: 4 * time.Second})
	for _, err := range book(during) {
		require.ErrorIs(t, err, errGaveUp)
	}
	away := s.gateway.Figures()
	calls := len(away.Away)
	require.LessOrEqual(t, calls, customers*attempts, "an attempt of a customer is one call of the gateway, no more")
	// On a slow machine an attempt may find the one before it still at work, and makes no call then.
	require.GreaterOrEqual(t, calls, customers*(attempts-1))
	require.Equal(t, customers*attempts, during.counted().requests)
	require.Empty(t, s.gateway.Charges())

	// The first calls come together; the last ones are spread.
	const wave = 250 * time.Millisecond
	first, last := peak(away.Away[:customers], wave), peak(away.Away[calls-customers:], wave)
	t.Logf("%d customers, %d calls in %v; most within %v: %d at first, %d at last", customers, calls,
		away.Away[calls-1].Sub(away.Away[0]).Round(time.Millisecond), wave, first, last)
	require.LessOrEqual(t, last, customers*3/4, "they come back together")
	require.GreaterOrEqual(t, away.Away[calls-1].Sub(away.Away[0]), 3*time.Second, "they did not wait as long as they were asked to")

	s.gateway.SetAway(false)
	after := s.app(url, persistent)
	for _, err := range book(after) {
		require.NoError(t, err)
	}
	l := s.ledger()
	for _, b := range bookings {
		require.Equal(t, 1, l.rides[b.Trip], b.Trip)
		require.Equal(t, 1, l.charges[b.Trip], b.Trip)
		require.Equal(t, 1, l.receipts[b.Trip], b.Trip)
	}
	require.Equal(t, calls+customers, s.gateway.Figures().Calls)
	require.Zero(t, after.counted().replays)
}

// peak is how many of the times, which are in order, lie within d of each other.
func peak(times []time.Time, d time.Duration) int {
	most := 0
	for i := range times {
		n := 0
		for _, t := range times[i:] {
			if t.Sub(times[i]) < d {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}
