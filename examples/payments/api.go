package main

import (
	"log/slog"
	"net/http"
	"strings"
	"time"

	"cloud.google.com/go/spanner"

	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/idempotency/idempotencyhttp"
	"github.com/spanqueue/spanqueue/schema"
)

// newAPI is the service that customers' apps talk to.
func newAPI(client *spanner.Client, table schema.Operations, s *rides, log *slog.Logger) (http.Handler, error) {
	store, err := idempotency.New(client, table, idempotency.Config{Lease: 5 * time.Second, CommitTimeout: 5 * time.Second, Logger: log})
	if err != nil {
		return nil, err
	}
	mw, err := idempotencyhttp.New(store, idempotencyhttp.Config{Scope: customer, RetryAfter: time.Second, Logger: log})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/rides", mw.Steps("create ride", s.create))
	return mux, nil
}

// customer is who asks. A real service checks a token's signature here; the
// point is that it is the token that says who asks, and not the order.
func customer(r *http.Request) (string, error) {
	token, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer token-of-")
	if !found || token == "" {
		return "", &idempotencyhttp.Problem{Status: http.StatusUnauthorized, Header: http.Header{"Www-Authenticate": {"Bearer"}}}
	}
	return token, nil
}
