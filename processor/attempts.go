package processor

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/duetime"
	"github.com/spanqueue/spanqueue/internal/settle"
	"github.com/spanqueue/spanqueue/queue"
)

// attempts knows how often messages were started and how that went. With a ledger it knows it beyond this process, at no
// cost for a fresh message: a record can only exist for a message that may have been delivered before.
type attempts struct {
	limit  int            // 0: none
	ledger backend.Ledger // nil: counted in memory, and retried for ever
	starts starts
	memory memory
	length time.Duration // of a lease
	// timeout bounds what is asked of the ledger at a time.
	timeout time.Duration
}

func newAttempts(q backend.Queue, limit int, timeout time.Duration) *attempts {
	a := &attempts{length: q.LeaseLength(), timeout: timeout}
	if ledger, ok := q.(backend.Ledger); ok && limit > 0 {
		a.limit, a.ledger = limit, ledger
		a.starts = starts{ledger: ledger, timeout: timeout, lead: make(chan struct{}, 1)}
	}
	return a
}

// attempt is one start of a message.
type attempt struct {
	attempts  *attempts
	message   *queue.Message // another delivery after a deferral
	before    backend.Record // what was known before it
	uncounted bool           // it had to be counted in the ledger, and was not
	recorded  atomic.Bool    // there is a record of it in the ledger
}

// begin counts the starts, where that is needed, before the handler is started: a handler that kills its process never
// reports a failure. It returns an attempt for each message, and an error when those that are uncounted must not be
// started.
func (a *attempts) begin(ctx context.Context, messages []*queue.Message) ([]*attempt, error) {
	all := make([]*attempt, len(messages))
	var counted []*attempt
	var deliveries []backend.Delivery
	for i, m := range messages {
		all[i] = a.attempt(m)
		switch {
		case a.ledger == nil:
			all[i].before.Failures = a.memory.failures(m)
		case a.maybeDeliveredBefore(m):
			all[i].uncounted = true
			counted = append(counted, all[i])
			deliveries = append(deliveries, m.Delivery())
		}
	}
	if len(counted) == 0 {
		return all, nil
	}
	before, err := a.starts.begin(ctx, deliveries)
	for i, t := range counted {
		if before != nil {
			// With an error the handler will not be started, but the count may have landed: it is taken back, if it has.
			t.before = before[i]
			t.recorded.Store(err == nil || settle.MayHaveLanded(err))
		}
		t.uncounted = err != nil
	}
	return all, err
}

// attempt returns an attempt at a message whose start has not been counted, unless the queue counts by itself.
func (a *attempts) attempt(m *queue.Message) *attempt {
	t := &attempt{attempts: a, message: m}
	t.recorded.Store(a.ledger != nil && m.Delivery().Record != nil)
	return t
}

// maybeDeliveredBefore says whether the message may have been delivered before, or carries a record of earlier attempts.
// It compares stamps of the database with each other: a message that was leased within a lease's length of its due time
// cannot have been leased to anyone before.
func (a *attempts) maybeDeliveredBefore(m *queue.Message) bool {
	if duetime.Marked(m.DeliverTime) || m.Lease.End.IsZero() {
		return true
	}
	leasedAt := m.Lease.End.Add(-a.length)
	return leasedAt.Sub(m.DeliverTime) >= a.length
}

// startedTooOften says whether the handler was started so often without an outcome that it must not be started again.
func (t *attempt) startedTooOften() bool {
	return t.attempts.ledger != nil && t.before.Starts > t.attempts.limit
}

// number is which attempt this is, counted from 1.
func (t *attempt) number() int { return t.before.Starts + t.before.Failures + 1 }

// shown returns a copy of the message that says which attempt this is.
func (t *attempt) shown(m *queue.Message) *queue.Message {
	shown := *m
	shown.Attempt = t.number()
	return &shown
}

// failed returns the record of the message after a failure.
func (t *attempt) failed() backend.Record {
	r := t.before
	r.Failures++
	if t.attempts.ledger == nil {
		t.attempts.memory.count(t.message)
	}
	return r
}

// deferred returns the record of the message after it was postponed without a failure.
func (t *attempt) deferred() backend.Record {
	r := t.before
	r.Deferrals++
	return r
}

// keep writes the record for the message as it is sent again.
func (t *attempt) keep(ctx context.Context, tx backend.Tx, resent backend.Outgoing, r backend.Record) error {
	if t.attempts.ledger == nil {
		return nil
	}
	return tx.(backend.LedgerTx).Keep(ctx, resent, r)
}

// carry writes the record for the message as it is deferred: the start goes on, under the new delivery.
func (t *attempt) carry(ctx context.Context, tx backend.Tx, resent backend.Outgoing) error {
	r := t.before
	r.Starts++
	t.recorded.Store(t.attempts.ledger != nil)
	return t.keep(ctx, tx, resent, r)
}

// moved returns the message as it is held now, and goes on with its delivery.
func (t *attempt) moved(m *queue.Message) *queue.Message {
	t.message = m
	return t.shown(m)
}

// forget removes the record in the transaction that takes the message out.
func (t *attempt) forget(ctx context.Context, tx backend.Tx) error {
	if !t.recorded.Load() {
		return nil
	}
	return tx.(backend.Forgetter).Forget(ctx, t.message.Delivery())
}

// ended is called when the message is gone for good.
func (t *attempt) ended() {
	if t.attempts.ledger == nil {
		t.attempts.memory.forget(t.message)
	}
}

// takeBack undoes the count of a start that was nobody's attempt. ctx must have an end.
func (t *attempt) takeBack(ctx context.Context) error {
	if !t.recorded.Load() {
		return nil
	}
	d := t.message.Delivery()
	if d.Record == nil {
		d.Record = &t.before
	}
	return t.attempts.ledger.TakeBack(ctx, d)
}
