package queue

import (
	"cmp"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
)

// Message is one delivery of a message. It is not changed after it was received; whoever holds it may read it at any
// time, and must not change what its fields point to.
type Message struct {
	// Key names the message. Its parts are int64, string, []byte, bool, time.Time, civil.Date, big.Rat or uuid.UUID by
	// their columns' types; a NULL part is the matching spanner.Null type (nil for BYTES).
	Key spanner.Key

	// Payload holds what was sent, byte for byte. A STRING payload is its UTF-8 text and a proto its serialised form.
	// JSON is the text that the database stored, digits kept.
	Payload []byte

	// DeliverTime is when this delivery became due, as the database has it.
	DeliverTime time.Time

	// Lease came with the delivery. Renewing gives a new Lease and leaves this one as it is.
	Lease Lease

	// LastOfBatch is the database's word that nothing more of this batch comes.
	LastOfBatch bool

	// Attempt is which attempt at the message this is, counted from 1, as far as is known; 0 where nothing is: a native
	// queue does not show it, and package processor keeps count. A queue table counts by itself.
	Attempt int

	columns  []string
	priority int
	record   *backend.Record
	claim    string // of a message that was only looked at: the token of whoever has, or had, it
}

// Lease is a claim on a delivery.
type Lease struct {
	// Token renews the lease. That of a Spanner queue dies with the first renewal, that of a queue table stays.
	Token string
	// End is the database's stamp of the lease's end, for people to read. Never compare it with this machine's clock.
	End time.Time
}

// Column returns the key part of the column with the given name, in any case. It reports false when the key has no such
// column.
func (m *Message) Column(name string) (any, bool) {
	for i, c := range m.columns {
		if equalName(c, name) {
			return m.Key[i], true
		}
	}
	return nil, false
}

// String names the delivery for a log: its key and due time, not its payload.
func (m *Message) String() string {
	return fmt.Sprintf("%v due %s", m.Key, m.DeliverTime.UTC().Format(time.RFC3339Nano))
}

func (q *Queue) message(d backend.Delivery) *Message {
	m := &Message{
		Key:         d.Key,
		Payload:     d.Payload,
		DeliverTime: d.DeliverTime,
		Lease:       Lease{Token: d.Token, End: d.LeaseEnd},
		LastOfBatch: d.LastOfBatch,
		columns:     q.columns,
		priority:    d.Priority,
		record:      d.Record,
	}
	if d.Record != nil {
		m.Attempt = d.Record.Starts + d.Record.Failures + 1
	}
	return m
}

// Delivery returns the message as the seam has it. It is for the packages of this module.
func (m *Message) Delivery() backend.Delivery {
	return backend.Delivery{
		Key:         m.Key,
		Payload:     m.Payload,
		DeliverTime: m.DeliverTime,
		Token:       cmp.Or(m.Lease.Token, m.claim),
		LeaseEnd:    m.Lease.End,
		LastOfBatch: m.LastOfBatch,
		Priority:    m.priority,
		Record:      m.record,
	}
}
