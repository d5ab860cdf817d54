package idempotencyhttp_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/idempotency/idempotencyhttp"
	"github.com/spanqueue/spanqueue/schema"
)

// mode is a way to mount a handler.
type mode string

const (
	inTx      mode = "Tx"
	inSteps   mode = "Steps"
	inPolling mode = "Steps with polling"
)

var modes = []mode{inTx, inSteps, inPolling}

// script is a handler of either mode: in steps it is the last one.
type script func(w http.ResponseWriter, r *http.Request, tx *spanner.ReadWriteTransaction) error

// world is a database, a server on it, and a client that speaks to the server.
type world struct {
	*testing.T
	mode    mode
	db      *emulatortest.DB
	spanner *spanner.Client
	http    *http.Client
	url     string
	handler http.Handler // the service, as it is mounted
	script  atomic.Pointer[script]
	// hold, if set, is called outside by an operation in steps, before the
	// script.
	hold atomic.Pointer[func(context.Context) error]
	// runs counts the runs of the script that were begun.
	runs atomic.Int64
	// blocked is a caller who may do nothing any more.
	blocked atomic.Value
}

type settings struct {
	store idempotency.Config
	http  idempotencyhttp.Config
	// steps replaces the handler that runs the script, in the modes with steps.
	steps idempotencyhttp.StepsHandler
}

var quiet = slog.New(slog.DiscardHandler)

func newWorld(t *testing.T, m mode, s settings) *world {
	t.Helper()
	w := &world{T: t, mode: m}
	w.play(created)
	w.blocked.Store("")
	w.db = emulatortest.Database(t, append(schema.Operations{}.Statements(),
		`CREATE TABLE Counters (Id STRING(64) NOT NULL, N INT64 NOT NULL) PRIMARY KEY (Id)`)...)
	w.spanner = w.db.Client(t)
	_, err := w.spanner.Apply(t.Context(), []*spanner.Mutation{spanner.Insert("Counters", []string{"Id", "N"}, []any{"a", 0})})
	require.NoError(t, err)
	s.store.Logger = quiet
	store, err := idempotency.New(w.spanner, schema.Operations{}, s.store)
	require.NoError(t, err)
	if s.http.Logger == nil {
		s.http.Logger = quiet
	}
	s.http.Scope = w.scope
	if m == inPolling {
		s.http.Polling = idempotencyhttp.Polling{Path: "/operations/", Secret: []byte(strings.Repeat("s", 32))}
	}
	mw, err := idempotencyhttp.New(store, s.http)
	require.NoError(t, err)
	w.handler = w.mount(mw, s.steps)
	w.serve(w.handler)
	return w
}

func (w *world) mount(mw *idempotencyhttp.Middleware, steps idempotencyhttp.StepsHandler) http.Handler {
	mux := http.NewServeMux()
	var h http.Handler
	switch {
	case w.mode == inTx:
		h = mw.Tx("make thing", w.run)
	case steps != nil:
		h = mw.Steps("make thing", steps)
	default:
		h = mw.Steps("make thing", w.lastStep)
	}
	for _, route := range []string{"/things", "/things/{id}", "/other/{id}"} {
		mux.Handle(route, h)
	}
	if w.mode == inPolling {
		mux.Handle("/operations/", mw.Operations())
	}
	return mux
}

func (w *world) serve(h http.Handler) {
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = slog.NewLogLogger(quiet.Handler(), slog.LevelError) // panics of handlers
	server.Start()
	w.Cleanup(server.Close)
	w.http, w.url = server.Client(), server.URL
	// The transport would repeat a request with an Idempotency-Key by itself,
	// and a redirect is an answer like others.
	w.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	w.http.Transport.(*http.Transport).DisableKeepAlives = true
}

func (w *world) play(s script) { w.script.Store(&s) }

func (w *world) run(rw http.ResponseWriter, r *http.Request, tx *spanner.ReadWriteTransaction) error {
	w.runs.Add(1)
	return (*w.script.Load())(rw, r, tx)
}

// lastStep runs the script as the last step of an operation. The script reads
// the request's body there, in each run.
func (w *world) lastStep(r *http.Request, s *idempotencyhttp.Steps) error {
	if hold := w.hold.Load(); hold != nil {
		call := func(ctx context.Context, _ string) (int, error) { return 1, (*hold)(ctx) }
		if _, err := (idempotency.Outside[int]{Call: call}).Step(r.Context(), s.Run, "call"); err != nil {
			return err
		}
	}
	return s.Complete(r.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction, rw http.ResponseWriter) error {
		return w.run(rw, r.WithContext(ctx), tx)
	})
}

func (w *world) scope(r *http.Request) (string, error) {
	switch who := r.Header.Get("Authorization"); who {
	case "", w.blocked.Load().(string):
		return "", errors.New("nobody is there")
	case "unknown":
		return "", &idempotencyhttp.Problem{Status: http.StatusUnauthorized, Title: "Who are you?", Header: http.Header{"Www-Authenticate": {"Basic"}}}
	default:
		return who, nil
	}
}

// created is the script of most cases: an effect, and an answer with all that
// may and may not be replayed.
func created(w http.ResponseWriter, r *http.Request, tx *spanner.ReadWriteTransaction) error {
	if err := count(r.Context(), tx); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Location", "/things/7")
	w.Header().Set("ETag", `"v1"`)
	w.Header().Set("Set-Cookie", "session=secret")
	w.Header().Set("X-Own", "own")
	w.WriteHeader(http.StatusCreated)
	_, err := io.WriteString(w, `{"id":7}`)
	return err
}

// count is the effect. A doubled one shows.
func count(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
	row, err := tx.ReadRow(ctx, "Counters", spanner.Key{"a"}, []string{"N"})
	if err != nil {
		return err
	}
	var n int64
	if err := row.Column(0, &n); err != nil {
		return err
	}
	return tx.BufferWrite([]*spanner.Mutation{spanner.Update("Counters", []string{"Id", "N"}, []any{"a", n + 1})})
}

// effects is how often an effect was committed.
func (w *world) effects() int64 {
	w.Helper()
	row, err := w.spanner.Single().ReadRow(w.Context(), "Counters", spanner.Key{"a"}, []string{"N"})
	require.NoError(w, err)
	var n int64
	require.NoError(w, row.Column(0, &n))
	return n
}

// records is how many operations are remembered.
func (w *world) records() (n int64) {
	w.Helper()
	err := w.spanner.Single().Query(w.Context(), spanner.NewStatement("SELECT COUNT(*) FROM Operations")).Do(func(row *spanner.Row) error {
		return row.Column(0, &n)
	})
	require.NoError(w, err)
	return n
}

// expire makes all operations older than the retention.
func (w *world) expire() {
	w.Helper()
	_, err := w.spanner.ReadWriteTransaction(w.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		_, err := tx.Update(ctx, spanner.NewStatement("UPDATE Operations SET CompletedAt = TIMESTAMP_SUB(CompletedAt, INTERVAL 3 DAY) WHERE true"))
		return err
	})
	require.NoError(w, err)
}

func (w *world) fault(rule fault.Rule) *fault.Handle {
	rule.Database = w.db.Name
	h := w.db.Front().Faults().Add(rule)
	w.Cleanup(h.Remove)
	return h
}

// lastTag is on the transaction that ends an operation.
func (w *world) lastTag() string {
	if w.mode == inTx {
		return "spanqueue-do"
	}
	return "spanqueue-step"
}
