package queuetest

import (
	"fmt"
	"sort"
	"time"

	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
)

// row is a message in the queue.
type row struct {
	id       string
	message  backend.Outgoing
	token    string    // of the living lease; empty when there is none
	leaseEnd time.Time // by elapsed time
}

// insertLocked puts the message in. Now means now by the queue's clock, as the service stamps it: to the microsecond.
func (m *Memory) insertLocked(out backend.Outgoing) {
	if out.DeliverTime.IsZero() {
		out.DeliverTime = m.nowLocked().Truncate(time.Microsecond)
	}
	out.DeliverTime = out.DeliverTime.Round(0).UTC()
	out.Payload = append([]byte{}, out.Payload...)
	id := rowcodec.ID(out.Key)
	m.rows[id] = &row{id: id, message: out}
}

// removeLocked takes the message out. Its token is answered from now on as the service answers: by a row without a new
// token.
func (m *Memory) removeLocked(id string) {
	r := m.rows[id]
	m.endLeaseLocked(r, time.Now())
	if r.token != "" {
		m.tokens[r.token] = nil
	}
	delete(m.rows, id)
	m.counts.Acked++
}

// endLeaseLocked notes that a lease has ended.
func (m *Memory) endLeaseLocked(r *row, now time.Time) {
	if r.token == "" || now.Before(r.leaseEnd) {
		return
	}
	m.counts.LeasesEnded++
	delete(m.tokens, r.token)
	r.token = ""
}

// grantLocked gives the message a lease, or its lease a new token and a full length.
func (m *Memory) grantLocked(r *row, now time.Time) {
	if r.token != "" {
		delete(m.tokens, r.token)
	}
	m.tokenNo++
	r.token = fmt.Sprintf("lease-%d", m.tokenNo)
	r.leaseEnd = now.Add(m.leaseLength)
	m.tokens[r.token] = r
}

// leaseSomeLocked leases up to n available messages, those due first in front, and returns them as they are delivered.
// When there are none it says when there may be.
func (m *Memory) leaseSomeLocked(n int) (ds []backend.Delivery, next time.Duration) {
	now, server := time.Now(), m.nowLocked()
	next = -1
	later := func(d time.Duration) {
		if next < 0 || d < next {
			next = d
		}
	}
	var available []*row
	for _, r := range m.rows {
		m.endLeaseLocked(r, now)
		switch {
		case r.token != "":
			later(r.leaseEnd.Sub(now))
		case r.message.DeliverTime.After(server):
			later(r.message.DeliverTime.Sub(server))
		default:
			available = append(available, r)
		}
	}
	sortRows(available)
	available = available[:min(n, len(available))]
	for i, r := range available {
		m.grantLocked(r, now)
		d := r.delivery()
		d.LeaseEnd = server.Add(m.leaseLength)
		d.LastOfBatch = i == len(available)-1
		ds = append(ds, d)
	}
	return ds, next
}

func (r *row) delivery() backend.Delivery {
	return backend.Delivery{
		Key:         r.message.Key,
		Payload:     append([]byte{}, r.message.Payload...),
		DeliverTime: r.message.DeliverTime,
		Token:       r.token,
	}
}

func sortRows(rows []*row) {
	sort.Slice(rows, func(i, j int) bool {
		a, b := rows[i], rows[j]
		if !a.message.DeliverTime.Equal(b.message.DeliverTime) {
			return a.message.DeliverTime.Before(b.message.DeliverTime)
		}
		return a.id < b.id
	})
}
