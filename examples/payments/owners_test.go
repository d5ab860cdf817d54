package main

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/schema"
)

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

// Two owners one after the other, the first still at work: it cannot renew its
// lease, and a second attempt takes the request over while the first one's call
// of the gateway is under way. Both calls arrive, under one key.
func TestStaleOwnerAtTheGatewayMakesOneCharge(t *testing.T) {
	t.Parallel()
	called, let := make(chan struct{}, 2), make(chan struct{})
	s := newStage(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			called <- struct{}{}
			<-let
			h.ServeHTTP(w, r)
		})
	})
	url := s.service(operations, quiet)
	b := newBookings(1, 3)[0]
	b.doubleClick, b.patience = false, patient

	stale := make(chan error, 1)
	go func() {
		_, err := s.app(url, backoff{attempts: 1}).book(t.Context(), b)
		stale <- err
	}()
	<-called // the first owner is at the gateway; from now on its lease is not renewed
	renewals := s.db.faults().Add(fault.Rule{
		Method: "Commit", Tag: "spanqueue-step", Database: s.db.name, Do: fault.Before(codes.FailedPrecondition, "no"),
	})
	err := <-stale
	require.ErrorContains(t, err, "409", "an owner without a lease says that another has the request")
	renewals.Remove()

	next := make(chan error, 1)
	second := s.app(url, backoff{attempts: 20, min: 100 * time.Millisecond, max: time.Second})
	go func() {
		_, err := second.book(t.Context(), b)
		next <- err
	}()
	<-called // the second owner is at the gateway too
	close(let)
	require.NoError(t, <-next)
	require.Eventually(t, func() bool { return s.gateway.Figures().Calls == 2 }, 10*time.Second, 10*time.Millisecond)

	l := s.ledger()
	require.Equal(t, 1, l.rides[b.Trip])
	require.Equal(t, 1, l.charges[b.Trip])
	require.Equal(t, 1, l.receipts[b.Trip])
	require.Zero(t, l.inconsistent)
	require.Equal(t, 1, s.gateway.Figures().Repeated)
	require.Equal(t, 1, second.counted().fresh)
}
