package main

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/examples/payments/gateway"
	"github.com/spanqueue/spanqueue/schema"
)

// stage is a database, a gateway without faults, and what a test puts on it.
type stage struct {
	*testing.T
	db      *database
	gateway *gateway.Gateway
	pay     string // the gateway's URL
	client  *http.Client
}

func newStage(t *testing.T, before func(http.Handler) http.Handler, more ...schema.Element) *stage {
	t.Helper()
	s := &stage{T: t, gateway: gateway.New(1, gateway.Faults{})}
	var err error
	s.db, err = openDatabase(t.Context(), quiet, more...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.db.close()) })
	var done func()
	s.client, done = newHTTPClient()
	s.pay = s.serve(before(s.gateway))
	t.Cleanup(done)
	return s
}

var quiet = slog.New(slog.DiscardHandler)

func (s *stage) serve(h http.Handler) string {
	s.Helper()
	server, err := serve(h, quiet)
	require.NoError(s, err)
	s.Cleanup(func() { require.NoError(s, server.stop()) })
	return server.url
}

// service puts a service with a table of records on the stage, and returns its URL.
func (s *stage) service(table schema.Operations, log *slog.Logger) string {
	s.Helper()
	api, err := newAPI(s.db.client, table, &rides{outbox: s.db.outbox, payment: payment{s.client, s.pay}}, log)
	require.NoError(s, err)
	return s.serve(api)
}

func (s *stage) app(url string, b backoff) *app {
	c, done := newHTTPClient()
	s.Cleanup(done)
	return &app{http: c, url: url, backoff: b}
}

func (s *stage) ledger() ledger {
	s.Helper()
	l, err := readLedger(s.Context(), s.db.client, s.gateway.Charges(), nil)
	require.NoError(s, err)
	return l
}

// louds keeps the errors that were logged.
type louds struct {
	slog.Handler
	mu       sync.Mutex
	messages []string
}

func (l *louds) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	l.messages = append(l.messages, text)
	return nil
}

func (l *louds) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }

func (l *louds) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.messages
}

// The gateway is away for longer than the customers' patience lasts. Each of
// them makes a bounded number of calls, no layer between multiplies them, and
// they come back at different times. When it is there again the same requests
// go on: one ride and one charge each.
func TestOutageOfTheGatewayMakesNoStorm(t *testing.T) {
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
	require.Len(t, away.Away, customers*attempts, "an attempt of a customer is one call of the gateway, no more")
	require.Equal(t, customers*attempts, during.counted().requests)
	require.Empty(t, s.gateway.Charges())

	// The first calls come together; the last ones are spread.
	const wave = 250 * time.Millisecond
	first, last := peak(away.Away[:customers], wave), peak(away.Away[customers*(attempts-1):], wave)
	t.Logf("%d customers, %d calls in %v; most within %v: %d at first, %d at last", customers, len(away.Away),
		away.Away[len(away.Away)-1].Sub(away.Away[0]).Round(time.Millisecond), wave, first, last)
	require.LessOrEqual(t, last, customers/2, "they come back together")
	require.GreaterOrEqual(t, away.Away[customers*attempts-1].Sub(away.Away[0]), 3*time.Second, "they did not wait as long as they were asked to")

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
	require.Equal(t, customers*attempts+customers, s.gateway.Figures().Calls)
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

// Two owners of one request, forced: two services that keep their records in
// two tables, so that neither sees the other's. The application's own unique
// key is what is left: the second ride is refused, nothing is charged for it,
// and the failure is loud.
func TestTwoOwnersMakeOneRideAndOneCharge(t *testing.T) {
	t.Parallel()
	called, let := make(chan struct{}, 2), make(chan struct{})
	other := schema.Operations{Table: "OtherOperations"}
	s := newStage(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			called <- struct{}{}
			<-let
			h.ServeHTTP(w, r)
		})
	}, other)
	loud := &louds{Handler: slog.DiscardHandler}
	once := backoff{attempts: 1}
	one := s.app(s.service(operations, quiet), once)
	two := s.app(s.service(other, slog.New(loud)), once)
	b := newBookings(1, 3)[0]
	b.doubleClick, b.patience = false, patient

	ride := make(chan error, 1)
	go func() {
		_, err := one.book(t.Context(), b)
		ride <- err
	}()
	<-called // the first owner has its ride and is about to charge
	_, err := two.book(t.Context(), b)
	require.ErrorContains(t, err, "410")
	require.Len(t, loud.all(), 1)
	require.Contains(t, loud.all()[0], "is there already")
	require.NotContains(t, loud.all()[0], b.key, "a key was logged")
	close(let)
	require.NoError(t, <-ride)

	l := s.ledger()
	require.Equal(t, 1, l.rides[b.Trip])
	require.Equal(t, 1, l.charges[b.Trip])
	require.Equal(t, 1, l.receipts[b.Trip])
	require.Zero(t, l.inconsistent)
	require.Equal(t, 1, s.gateway.Figures().Calls)
}
