package queuetest

import (
	"context"
	"iter"
	"time"

	"github.com/spanqueue/spanqueue/internal/backend"
)

// defaultBatch is how many messages are leased at once when the receiver does not say.
const defaultBatch = 100

// Receive implements the seam. A batch is leased when the receiver has taken the one before: what it leaves of a batch
// waits out its lease, as what is on its way does in a real stream.
func (m *Memory) Receive(ctx context.Context, r backend.ReceiveRequest) iter.Seq2[backend.Delivery, error] {
	return func(yield func(backend.Delivery, error) bool) {
		if err := m.call(ctx, OpReceive, func() error { return nil }); err != nil {
			yield(backend.Delivery{}, err)
			return
		}
		m.mu.Lock()
		m.counts.Streams++
		m.mu.Unlock()
		batch := r.MaxBatch
		if batch == 0 {
			batch = defaultBatch
		}
		end := time.NewTimer((r.MaxDuration + time.Second - 1).Truncate(time.Second))
		defer end.Stop()
		for {
			m.mu.Lock()
			ds, next := m.leaseSomeLocked(batch)
			changed := m.changed
			m.mu.Unlock()
			for _, d := range ds {
				if err := m.call(ctx, OpRow, func() error { return nil }); err != nil {
					yield(backend.Delivery{}, err)
					return
				}
				m.mu.Lock()
				m.counts.Delivered++
				m.mu.Unlock()
				if !yield(d, nil) {
					return
				}
			}
			more, err := wait(ctx, end.C, changed, next, len(ds) > 0)
			if err != nil {
				yield(backend.Delivery{}, err)
			}
			if !more {
				return
			}
		}
	}
}

// wait returns when there may be more to deliver, and reports false when the stream is over. With goOn it only looks
// whether the stream is over.
func wait(ctx context.Context, end <-chan time.Time, changed <-chan struct{}, next time.Duration, goOn bool) (bool, error) {
	var due <-chan time.Time
	if next >= 0 {
		timer := time.NewTimer(next)
		defer timer.Stop()
		due = timer.C
	}
	if goOn {
		closed := make(chan struct{})
		close(closed)
		changed = closed
	}
	select {
	case <-ctx.Done():
		return false, ended(ctx)
	case <-end:
		return false, nil
	default:
	}
	select {
	case <-ctx.Done():
		return false, ended(ctx)
	case <-end:
		return false, nil
	case <-changed:
	case <-due:
	}
	return true, nil
}

// Renew implements the seam. A token that was rotated away or whose lease has ended has no answer; that of an acknowledged
// message has one without a new token.
func (m *Memory) Renew(ctx context.Context, tokens []string) (map[string]backend.Renewal, error) {
	answers := make(map[string]backend.Renewal)
	err := m.call(ctx, OpRenew, func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.counts.RenewCalls++
		now := time.Now()
		end := m.nowLocked().Add(m.leaseLength)
		for _, t := range tokens {
			r, known := m.tokens[t]
			if !known {
				continue
			}
			if r == nil {
				answers[t] = backend.Renewal{}
				continue
			}
			if m.endLeaseLocked(r, now); r.token == "" {
				m.wakeLocked()
				continue
			}
			m.grantLocked(r, now)
			m.counts.Renewed++
			answers[t] = backend.Renewal{Token: r.token, LeaseEnd: end}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return answers, nil
}
