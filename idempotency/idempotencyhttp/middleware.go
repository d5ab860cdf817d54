package idempotencyhttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"cloud.google.com/go/spanner"
	"github.com/google/uuid"

	"github.com/spanqueue/spanqueue/idempotency"
)

const (
	replayedHeader = "Idempotent-Replayed"
	// presentHeader says that the body was made from what the resource shows
	// now, see idempotency.Config.Present.
	presentHeader = "Idempotent-Present"
)

// Middleware makes HTTP handlers idempotent by the Idempotency-Key header. It
// is safe for concurrent use and has nothing to close.
type Middleware struct {
	store *idempotency.Store
	cfg   Config
	gate  *gate
	seal  *seal // nil without polling
}

// New returns a Middleware on the store's records. It makes no request. The
// error wraps ErrInvalid.
func New(store *idempotency.Store, cfg Config) (*Middleware, error) {
	if store == nil {
		return nil, fmt.Errorf("%w: New needs a store", ErrInvalid)
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	m := &Middleware{store: store, cfg: cfg, gate: newGate(cfg.MaxWaiters)}
	if cfg.Polling.on() {
		m.seal = newSeal(cfg.Polling.Secret)
	}
	return m, nil
}

// operationKey is the context's key of the operation.
type operationKey struct{}

// OperationOf returns the operation of a request that a handler got, for a
// unique key of the handler's own. It says false for any other request.
func OperationOf(r *http.Request) (idempotency.Operation, bool) {
	op, ok := r.Context().Value(operationKey{}).(idempotency.Operation)
	return op, ok
}

// request is a request that may be done or replayed.
type request struct {
	http *http.Request
	body []byte
	op   idempotency.Operation
	fp   idempotency.Fingerprint
}

// admit checks a request and says which operation it is. Its error is a
// *Problem.
func (m *Middleware) admit(w http.ResponseWriter, r *http.Request, name string) (*request, *Problem) {
	if !slices.Contains(m.cfg.Methods, r.Method) {
		p := newProblem(http.StatusMethodNotAllowed, "method", "The method is not allowed here", "")
		p.Header = http.Header{"Allow": {strings.Join(m.cfg.Methods, ", ")}}
		return nil, p
	}
	scope, problem := m.scope(r)
	if problem != nil {
		return nil, problem
	}
	key, err := parseKey(r.Header)
	switch {
	case errors.Is(err, errNoKey) && m.cfg.KeyOptional:
		key = uuid.NewString()
	case errors.Is(err, errNoKey):
		return nil, newProblem(http.StatusBadRequest, "key-missing", "The Idempotency-Key header is missing",
			"This operation needs a key that is new for each operation and the same for each attempt at it.")
	case err != nil:
		return nil, newProblem(http.StatusBadRequest, "key-invalid", "The Idempotency-Key header cannot be used", err.Error())
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, m.cfg.MaxRequest))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, newProblem(http.StatusRequestEntityTooLarge, "request-too-large", "The request is too large",
			fmt.Sprintf("The body may have %d bytes.", tooLarge.Limit))
	}
	if err != nil {
		return nil, newProblem(http.StatusBadRequest, "request-unreadable", "The request could not be read", "")
	}
	if len(body) == 0 && (r.ContentLength > 0 || len(r.PostForm) > 0) {
		// Without it two requests would have one fingerprint.
		m.cfg.Logger.ErrorContext(r.Context(), "idempotencyhttp: the request's body was read before; what reads it outside must put it back",
			"length", r.ContentLength)
		return nil, newProblem(http.StatusInternalServerError, "failed", "The operation has failed", "Nothing was done.")
	}
	fp, err := fingerprint(r, body)
	if err != nil {
		return nil, newProblem(http.StatusBadRequest, "request-unreadable", "The request could not be read", err.Error())
	}
	return &request{http: r, body: body, op: idempotency.Operation{Scope: scope, Name: name, Key: key}, fp: fp}, nil
}

// scope asks who is there. It stands before each replay as before each run.
func (m *Middleware) scope(r *http.Request) (string, *Problem) {
	scope, err := m.cfg.Scope(r)
	if err == nil {
		return scope, nil
	}
	var own *Problem
	if errors.As(err, &own) {
		return "", own
	}
	m.cfg.Logger.InfoContext(r.Context(), "idempotencyhttp: a request was refused", "error", err)
	return "", newProblem(http.StatusForbidden, "forbidden", "The request is not allowed", "")
}

// again returns the request for one run of a handler: with the whole body,
// whatever an earlier run has read, and with nothing that it has changed.
func (q *request) again(ctx context.Context) (*http.Request, body) {
	r := q.http.Clone(context.WithValue(ctx, operationKey{}, q.op))
	b := body{bytes.NewReader(q.body)}
	r.Body = b
	return r, b
}

// body is a request's body that has been read whole, and can be read again.
type body struct{ *bytes.Reader }

func (body) Close() error { return nil }

// effect makes an effect of a function that writes its answer to an
// http.ResponseWriter. last is set to the answer of the last run.
func (m *Middleware) effect(last *answer, f func(context.Context, *spanner.ReadWriteTransaction, http.ResponseWriter) error) idempotency.Effect {
	return func(ctx context.Context, tx *spanner.ReadWriteTransaction) (idempotency.Result, error) {
		w := newRecorder(m.cfg.MaxAnswer)
		err := f(ctx, tx, w)
		refused := errors.Is(err, ErrRefused)
		if err != nil && !refused {
			return idempotency.Result{}, err
		}
		var result idempotency.Result
		if *last, err = w.finish(); err != nil {
			return idempotency.Result{}, err
		}
		if !refused && last.status >= http.StatusBadRequest {
			return idempotency.Result{}, &notKept{*last}
		}
		if result, err = toResult(*last, m.cfg.Headers); err != nil {
			return idempotency.Result{}, err
		}
		if refused {
			return idempotency.Result{}, idempotency.Refuse(result)
		}
		return result, nil
	}
}

// reply sends what came of an operation. last is what this request's handler
// has answered, if it ran.
func (m *Middleware) reply(w http.ResponseWriter, q *request, last answer, receipt idempotency.Receipt, err error) {
	ctx := q.http.Context()
	if err != nil && receipt.Completed.IsZero() {
		m.failed(ctx, q.op, err).send(w)
		return
	}
	if err != nil { // the operation has ended; what came after does not change its answer
		m.cfg.Logger.ErrorContext(ctx, "idempotencyhttp: an error after the operation was completed", "operation", q.op, "error", err)
	}
	a, err := fromReceipt(receipt)
	if err != nil {
		m.failed(ctx, q.op, err).send(w)
		return
	}
	if receipt.Replayed {
		markReplayed(a, receipt)
	} else if last.same(a) {
		// The first caller gets all headers. An answer that differs is that of
		// a run that did not land.
		a.header = last.header
	}
	a.send(w)
}

func markReplayed(a answer, r idempotency.Receipt) {
	a.header.Set(replayedHeader, "true")
	if r.Present {
		a.header.Set(presentHeader, "true")
	}
}

func (a answer) same(b answer) bool {
	return a.status == b.status && bytes.Equal(a.body, b.body) && a.header.Get("Location") == b.header.Get("Location") &&
		a.header.Get("Content-Type") == b.header.Get("Content-Type")
}

// retryAfter is when to ask again: when the present owner's lease ends, but no
// later than the configured bound, since it may end sooner.
func (m *Middleware) retryAfter(err error) time.Duration {
	if left, ok := idempotency.RetryAfter(err); ok {
		return min(left, m.cfg.RetryAfter)
	}
	return m.cfg.RetryAfter
}

// mount makes an http.Handler that lets serve have the requests that may be
// done or replayed. It refuses a missing handler, and operation names that no
// request could be done under.
func (m *Middleware) mount(name string, handler bool, serve func(http.ResponseWriter, *request)) http.Handler {
	if !handler {
		panic(fmt.Sprintf("idempotencyhttp: the handler of operation %q is nil", name))
	}
	if n := utf8.RuneCountInString(name); n == 0 || n > 128 || !utf8.ValidString(name) {
		panic(fmt.Sprintf("idempotencyhttp: the operation name %q has %d characters; it needs 1 to 128 of UTF-8", name, n))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q, problem := m.admit(w, r, name)
		if problem != nil {
			problem.answer().send(w)
			return
		}
		serve(w, q)
	})
}
