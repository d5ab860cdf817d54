package queuetest

import (
	"context"
	"time"

	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
	"github.com/spanqueue/spanqueue/queue"
)

var (
	_ backend.Ledger   = (*Memory)(nil)
	_ backend.LedgerTx = (*tx)(nil)
)

// Dead is a message that was given up, as it is kept beside the queue.
type Dead struct {
	// Message is the delivery that was given up.
	Message *queue.Message
	// At is when, by the queue's clock.
	At time.Time
	// Reason, Error, Attempts and Handler say why, after how many attempts, and by whom.
	Reason, Error string
	Attempts      int
	Handler       string
}

// Dead returns the messages that were given up, in their order.
func (m *Memory) Dead() []Dead {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Dead{}, m.dead...)
}

// record is what is known of earlier deliveries, for one delivery.
type record struct {
	deliverTime time.Time
	backend.Record
}

// ledgerLock is the key that a transaction locks for the record of a message. It is another one than the message's own,
// since Begin does not wait for whoever acknowledges.
func ledgerLock(id string) string { return "record of " + id }

// CheckLedger returns nil: in memory nothing can be missing.
func (m *Memory) CheckLedger(context.Context) error { return nil }

// Begin implements the seam.
func (m *Memory) Begin(ctx context.Context, ds []backend.Delivery) ([]backend.Record, error) {
	var known []backend.Record  // by the last run that came to its commit
	wanted := make(map[int]int) // the starts that an earlier run of the function wanted on record, by index
	err := m.RunTx(ctx, backend.TxOptions{}, func(ctx context.Context, btx backend.Tx) error {
		t := btx.(*tx)
		before := make([]backend.Record, len(ds))
		for i, d := range ds {
			r, found, err := t.readRecord(ctx, d)
			switch {
			case err != nil:
				return err
			case found && r.deliverTime.After(d.DeliverTime):
				continue // the message has been sent again: its record is not this delivery's
			case found && r.deliverTime.Equal(d.DeliverTime):
				before[i] = r.Record
			}
			if starts, again := wanted[i]; again && before[i].Starts == starts {
				before[i].Starts-- // the commit of the run before has landed
				continue
			}
			counted := before[i]
			counted.Starts++
			wanted[i] = counted.Starts
			t.writeRecord(d.Key, record{d.DeliverTime, counted})
		}
		known = before
		return nil
	})
	return known, err
}

// TakeBack implements the seam.
func (m *Memory) TakeBack(ctx context.Context, d backend.Delivery) error {
	return m.RunTx(ctx, backend.TxOptions{}, func(ctx context.Context, btx backend.Tx) error {
		t := btx.(*tx)
		r, found, err := t.readRecord(ctx, d)
		if err != nil || !found || !r.deliverTime.Equal(d.DeliverTime) || r.Starts == 0 {
			return err
		}
		if d.Record != nil && r.Starts <= d.Record.Starts {
			return nil // the start never came to be
		}
		r.Starts--
		t.writeRecord(d.Key, r)
		return nil
	})
}

// readRecord reads the record of the delivery's key and keeps it locked.
func (t *tx) readRecord(ctx context.Context, d backend.Delivery) (record, bool, error) {
	id := rowcodec.ID(d.Key)
	if err := t.lock(ctx, ledgerLock(id)); err != nil {
		return record{}, false, err
	}
	t.memory.mu.Lock()
	defer t.memory.mu.Unlock()
	r, found := t.memory.records[id]
	return r, found, nil
}

// writeRecord writes the record at the commit.
func (t *tx) writeRecord(key []any, r record) {
	id := rowcodec.ID(key)
	t.atCommit(ledgerLock(id), func(m *Memory) {
		if r.First.IsZero() {
			r.First = m.nowLocked()
		}
		m.records[id] = r
	})
}

// Keep implements the seam.
func (t *tx) Keep(_ context.Context, resent backend.Outgoing, r backend.Record) error {
	t.writeRecord(resent.Key, record{resent.DeliverTime, r})
	return nil
}

// Forget implements the seam.
func (t *tx) Forget(_ context.Context, d backend.Delivery) error {
	id := rowcodec.ID(d.Key)
	t.atCommit(ledgerLock(id), func(m *Memory) { delete(m.records, id) })
	return nil
}

// Bury implements the seam.
func (t *tx) Bury(ctx context.Context, d backend.Delivery, l backend.DeadLetter) error {
	id := rowcodec.ID(d.Key)
	t.atCommit(ledgerLock(id), func(m *Memory) {
		m.dead = append(m.dead, Dead{
			Message: &queue.Message{
				Key:         d.Key,
				Payload:     append([]byte{}, d.Payload...),
				DeliverTime: d.DeliverTime,
			},
			At:       m.nowLocked(),
			Reason:   l.Reason,
			Error:    l.Error,
			Attempts: l.Attempts,
			Handler:  l.Handler,
		})
	})
	return t.Forget(ctx, d)
}
