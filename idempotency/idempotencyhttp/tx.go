package idempotencyhttp

import (
	"context"
	"errors"
	"net/http"
	"time"

	"cloud.google.com/go/spanner"
)

// TxHandler does the work of a request in one transaction: what it writes
// through tx and its answer are one commit. It may run several times before it
// commits once, each time with the whole body and an empty w, and must not call
// the outside. The request's context is the transaction's.
//
// What it returns decides. nil: its writes are committed and the answer is
// kept, if the status is below 400; from 400 on the answer is sent and nothing
// is kept, so that the next attempt runs anew. ErrRefused: the writes are
// dropped, the answer is kept. A *Problem, or any other error: nothing is kept,
// what was written to w is dropped, and the client gets the problem, or 500 or
// 503.
type TxHandler func(w http.ResponseWriter, r *http.Request, tx *spanner.ReadWriteTransaction) error

// Tx makes an http.Handler of one that does its work in a transaction. name is
// the operation's, 1 to 128 characters; like http.ServeMux.Handle, Tx panics on
// another, and without a handler.
//
// A duplicate that comes while the first request is at work waits for it and
// gets the replay, at most Config.Wait and within its own context. If the
// client goes away before the commit is sent, nothing is kept.
func (m *Middleware) Tx(name string, h TxHandler) http.Handler {
	return m.mount(name, h != nil, func(w http.ResponseWriter, q *request) { m.serveTx(w, q, h) })
}

// errRecordBusy: a request in another process may hold the record, or the
// database is slow; they cannot be told apart.
var errRecordBusy = errors.New("idempotencyhttp: the record could not be had within Config.Wait")

// patience ends a request that does not get the record within Config.Wait. It
// is to be stopped once it has it.
func (m *Middleware) patience(end context.CancelCauseFunc) *time.Timer {
	return time.AfterFunc(m.cfg.Wait, func() { end(errors.Join(errRecordBusy, context.DeadlineExceeded)) })
}

func (m *Middleware) serveTx(w http.ResponseWriter, q *request, h TxHandler) {
	waiting, cancel := context.WithTimeout(q.http.Context(), m.cfg.Wait)
	defer cancel()
	leave, err := m.gate.enter(waiting, q.op)
	if err != nil {
		m.failed(q.http.Context(), q.op, err).send(w)
		return
	}
	defer leave() // also when the handler panics

	ctx, end := context.WithCancelCause(q.http.Context())
	defer end(nil)
	busy := m.patience(end)
	defer busy.Stop()
	var last answer
	receipt, err := m.store.Do(ctx, q.op, q.fp, m.effect(&last,
		func(ctx context.Context, tx *spanner.ReadWriteTransaction, w http.ResponseWriter) error {
			busy.Stop() // it has the record
			r, _ := q.again(ctx)
			return h(w, r, tx)
		}))
	leave() // a client that reads slowly keeps nobody waiting
	m.reply(w, q, last, receipt, err)
}
