package queuetest

import (
	"context"
	"time"

	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
)

// Probe implements the seam.
func (m *Memory) Probe(ctx context.Context, d backend.Delivery) (p backend.Presence, err error) {
	err = m.call(ctx, OpProbe, func() error {
		found, there := m.stored(rowcodec.ID(d.Key))
		switch {
		case !there:
			p = backend.Gone
		case found.DeliverTime.Equal(d.DeliverTime):
			p = backend.Present
		default:
			p = backend.Moved
		}
		return nil
	})
	return p, err
}

// ServerTime implements the seam. Its answer is never behind: the way of the answer is added.
func (m *Memory) ServerTime(ctx context.Context) (time.Time, error) {
	sent := time.Now()
	var stamp time.Time
	err := m.call(ctx, OpServerTime, func() error {
		stamp = m.Now()
		return nil
	})
	return stamp.Add(time.Since(sent)), err
}

// Stats implements the seam.
func (m *Memory) Stats(context.Context) (backend.Stats, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.nowLocked()
	var s backend.Stats
	for _, r := range m.rows {
		if r.message.DeliverTime.After(now) {
			s.Delayed++
			continue
		}
		s.Ready++
		s.OldestAge = max(s.OldestAge, now.Sub(r.message.DeliverTime))
	}
	return s, nil
}

// Peek implements the seam.
func (m *Memory) Peek(_ context.Context, n int) ([]backend.Delivery, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rows := make([]*row, 0, len(m.rows))
	for _, r := range m.rows {
		rows = append(rows, r)
	}
	sortRows(rows)
	ds := make([]backend.Delivery, min(n, len(rows)))
	for i := range ds {
		ds[i] = rows[i].delivery()
		ds[i].Token = ""
	}
	return ds, nil
}

// Purge implements the seam.
func (m *Memory) Purge(ctx context.Context, n int) (int, error) {
	ds, err := m.Peek(ctx, n)
	if err != nil || len(ds) == 0 {
		return 0, err
	}
	removed := 0
	err = m.RunTx(ctx, backend.TxOptions{}, func(ctx context.Context, tx backend.Tx) error {
		missing, err := tx.AckAll(ctx, ds)
		removed = len(ds) - len(missing)
		return err
	})
	if err != nil {
		return 0, err
	}
	return removed, nil
}
