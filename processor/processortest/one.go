package processortest

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/spanqueue/spanqueue/internal/backend"
)

// one is a queue that delivers a single message.
type one struct {
	backend.Queue
	delivered *atomic.Bool
}

// Receive implements backend.Queue.
func (q one) Receive(ctx context.Context, r backend.ReceiveRequest) iter.Seq2[backend.Delivery, error] {
	return func(yield func(backend.Delivery, error) bool) {
		r.MaxBatch = 1
		for d, err := range q.Queue.Receive(ctx, r) {
			if err == nil && !q.delivered.CompareAndSwap(false, true) {
				break
			}
			if !yield(d, err) {
				return
			}
			if err == nil {
				break
			}
		}
		if q.delivered.Load() {
			<-ctx.Done()
			yield(backend.Delivery{}, ctx.Err())
		}
	}
}

// onlyOne returns the queue as one that delivers a single message, with the abilities that it has.
func onlyOne(q backend.Queue) backend.Queue {
	o := one{q, new(atomic.Bool)}
	ledger, hasLedger := q.(backend.Ledger)
	releaser, hasReleaser := q.(backend.Releaser)
	statements, hasStatements := q.(backend.Statements)
	type (
		l = backend.Ledger
		r = backend.Releaser
		s = backend.Statements
	)
	switch {
	case hasLedger && hasReleaser && hasStatements:
		return struct {
			one
			l
			r
			s
		}{o, ledger, releaser, statements}
	case hasLedger && hasStatements:
		return struct {
			one
			l
			s
		}{o, ledger, statements}
	case hasLedger && hasReleaser:
		return struct {
			one
			l
			r
		}{o, ledger, releaser}
	case hasLedger:
		return struct {
			one
			l
		}{o, ledger}
	}
	return o
}
