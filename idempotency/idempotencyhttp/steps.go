package idempotencyhttp

import (
	"context"
	"io"
	"net/http"

	"cloud.google.com/go/spanner"

	"github.com/spanqueue/spanqueue/idempotency"
)

// StepsHandler does the work of a request in steps, see
// idempotency.Store.Steps: it runs s.Run's steps and ends with s.Complete. Its
// context is the request's, but goes on when the client goes away: what has
// begun is brought to its end, within idempotency.Config.HandlerTimeout. It
// should read the request's body before its first step: the function of
// idempotency.Local may run several times and would find it read.
//
// An error ends the attempt, and the next one goes on from the last recovery
// point: a *Problem is sent as it is, any other as 500 or 503. What s.Refuse
// returns ends the operation. Returning nil without s.Complete is a mistake,
// answered with 500.
type StepsHandler func(r *http.Request, s *Steps) error

// Steps is one run of an operation in steps.
type Steps struct {
	// Run is for idempotency.Local and idempotency.Outside.
	Run *idempotency.Run

	m    *Middleware
	body body // of the handler's request
	last answer
}

// Complete is the last step: what f writes through tx, the answer that it
// writes to w and the end of the operation are one commit. f may run several
// times, each time with an empty w, and with what was left of the request's body
// when Complete was called. An answer with a status of 400 or above is sent but
// ends nothing. The error is to be returned by the handler.
func (s *Steps) Complete(ctx context.Context, f func(ctx context.Context, tx *spanner.ReadWriteTransaction, w http.ResponseWriter) error) error {
	read := s.body.Size() - int64(s.body.Len())
	return s.Run.Complete(ctx, s.m.effect(&s.last, func(ctx context.Context, tx *spanner.ReadWriteTransaction, w http.ResponseWriter) error {
		if _, err := s.body.Seek(read, io.SeekStart); err != nil {
			return err
		}
		return f(ctx, tx, w)
	}))
}

// Refuse returns an error that ends the operation with the answer that f
// writes, whatever its status: it is kept and replayed. What earlier steps have
// written stays. It may be returned by the function of a step or by the
// handler.
func (s *Steps) Refuse(f func(w http.ResponseWriter)) error {
	refuse := func(_ context.Context, _ *spanner.ReadWriteTransaction, w http.ResponseWriter) error {
		f(w)
		return ErrRefused
	}
	_, err := s.m.effect(&s.last, refuse)(context.Background(), nil)
	return err
}

// Steps makes an http.Handler of one that does its work in steps. name is as
// in Tx. A duplicate that comes while another request is at work is answered
// with 409, or with 202 if Config.Polling is set; at once, but while a local
// step is being committed, for which it waits, at most Config.Wait.
func (m *Middleware) Steps(name string, h StepsHandler) http.Handler {
	return m.mount(name, h != nil, func(w http.ResponseWriter, q *request) { m.serveSteps(w, q, h) })
}

func (m *Middleware) serveSteps(w http.ResponseWriter, q *request, h StepsHandler) {
	// Before it has begun the operation ends with its client, and with patience.
	client := q.http.Context()
	ctx, end := context.WithCancelCause(context.WithoutCancel(client))
	defer end(nil)
	detach := context.AfterFunc(client, func() { end(context.Cause(client)) })
	defer detach()
	busy := m.patience(end)
	defer busy.Stop()
	var last answer
	receipt, err := m.store.Steps(ctx, q.op, q.fp, func(ctx context.Context, run *idempotency.Run) error {
		detach()
		busy.Stop()
		r, b := q.again(ctx)
		s := &Steps{Run: run, m: m, body: b}
		err := h(r, s)
		last = s.last
		return err
	})
	if receipt.Completed.IsZero() && inProgress(err) && m.seal != nil {
		m.accepted(q.op, err).send(w)
		return
	}
	m.reply(w, q, last, receipt, err)
}
