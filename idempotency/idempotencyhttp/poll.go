package idempotencyhttp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spanqueue/spanqueue/idempotency"
)

// status is the body of a 202.
type status struct {
	// Operation is the URL to poll.
	Operation string `json:"operation"`
	// State is "in_progress", "uncertain", or "waiting" when nobody is at work
	// and the request has to be sent again for the operation to go on.
	State string `json:"state"`
}

// accepted is the answer to who asks for an operation that has not ended.
func (m *Middleware) accepted(op idempotency.Operation, err error) answer {
	s := status{Operation: m.cfg.Polling.Path + m.seal.close(op), State: "in_progress"}
	left, known := idempotency.RetryAfter(err)
	switch {
	case errors.Is(err, idempotency.ErrUncertain):
		s.State = "uncertain"
	case known && left == 0:
		s.State = "waiting"
	}
	body, err2 := json.Marshal(s)
	if err2 != nil { // two strings: it does not happen
		body = []byte("{}")
	}
	after := max(1, int64((m.retryAfter(err)+time.Second-1)/time.Second))
	return answer{status: http.StatusAccepted, body: body, header: http.Header{
		"Content-Type": {"application/json"},
		"Location":     {s.Operation},
		"Retry-After":  {fmt.Sprint(after)},
	}}
}

// Operations answers GETs of the operations that a 202 has named, below
// Config.Polling.Path: the operation's own answer as a replay when it has
// ended, 202 while it has not, 404 when there is none that the request's scope
// may see. It changes nothing and takes no lock. It panics without
// Config.Polling.
func (m *Middleware) Operations() http.Handler {
	if m.seal == nil {
		panic("idempotencyhttp: Operations needs Config.Polling")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			p := newProblem(http.StatusMethodNotAllowed, "method", "The method is not allowed here", "")
			p.Header = http.Header{"Allow": {"GET, HEAD"}}
			p.answer().send(w)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		m.look(r).send(w)
	})
}

func (m *Middleware) look(r *http.Request) answer {
	scope, problem := m.scope(r)
	if problem != nil {
		return problem.answer()
	}
	none := newProblem(http.StatusNotFound, "no-operation", "There is no such operation",
		"It left nothing, has expired, or belongs to another caller.")
	op, ok := m.seal.open(scope, strings.TrimPrefix(r.URL.Path, m.cfg.Polling.Path))
	if !ok {
		return none.answer()
	}
	receipt, err := m.store.Lookup(r.Context(), op)
	switch {
	case errors.Is(err, idempotency.ErrNoRecord):
		return none.answer()
	case inProgress(err), errors.Is(err, idempotency.ErrUncertain):
		return m.accepted(op, err)
	case err != nil:
		return m.failed(r.Context(), op, err)
	}
	a, err := fromReceipt(receipt)
	if err != nil {
		return m.failed(r.Context(), op, err)
	}
	markReplayed(a, receipt)
	return a
}
