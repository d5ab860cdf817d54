package main

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"testing"

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
