package queuetest

import (
	"context"
	"fmt"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
)

// Check implements the seam: what the database would refuse is refused.
func (m *Memory) Check(out backend.Outgoing) (backend.Outgoing, error) {
	key, err := m.key.Normalize(out.Key)
	if err != nil {
		return out, err
	}
	if err := m.payload.Check(out.Payload); err != nil {
		return out, err
	}
	if err := backend.CheckDeliverTime(out.DeliverTime); err != nil {
		return out, err
	}
	if out.Priority != 0 {
		return out, fmt.Errorf("the Priority is %d, a queue without priorities takes only 0", out.Priority)
	}
	out.Key = key
	return out, nil
}

// SamePayload implements the seam.
func (m *Memory) SamePayload(a, b []byte) bool { return m.payload.Equal(a, b) }

// SendMutation fails: there is no transaction to put the mutation into.
func (m *Memory) SendMutation(backend.Outgoing) (*spanner.Mutation, error) { return nil, ErrNoSpanner }

// SendStatement fails as SendMutation does.
func (m *Memory) SendStatement(backend.Outgoing) (spanner.Statement, error) {
	return spanner.Statement{}, ErrNoSpanner
}

// Send implements the seam.
func (m *Memory) Send(ctx context.Context, messages []backend.Outgoing) error {
	return m.RunTx(ctx, backend.TxOptions{}, func(ctx context.Context, tx backend.Tx) error {
		for _, out := range messages {
			if err := tx.Send(ctx, out); err != nil {
				return err
			}
		}
		return nil
	})
}

// SendOrIgnore implements the seam.
func (m *Memory) SendOrIgnore(ctx context.Context, messages []backend.Outgoing) (map[int]backend.Delivery, error) {
	var taken map[int]backend.Delivery
	err := m.RunTx(ctx, backend.TxOptions{}, func(ctx context.Context, btx backend.Tx) error {
		taken = make(map[int]backend.Delivery)
		own := make(map[string]backend.Delivery)
		for i, out := range messages {
			id := rowcodec.ID(out.Key)
			if err := btx.(*tx).lock(ctx, id); err != nil {
				return err
			}
			if d, there := m.stored(id); there {
				taken[i] = d
			} else if d, there := own[id]; there {
				taken[i] = d
			} else {
				own[id] = backend.Delivery{Key: out.Key, Payload: out.Payload, DeliverTime: out.DeliverTime}
				if err := btx.Send(ctx, out); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return taken, err
}

func (m *Memory) stored(id string) (backend.Delivery, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.rows[id]
	if r == nil {
		return backend.Delivery{}, false
	}
	d := r.delivery()
	d.Token = ""
	return d, true
}
