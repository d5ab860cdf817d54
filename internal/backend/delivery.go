package backend

import (
	"time"

	"cloud.google.com/go/spanner"
)

// Delivery is one hand-over of one message.
type Delivery struct {
	// Key names the message. Its parts have the types of package rowcodec.
	Key spanner.Key
	// Payload holds the bytes that were sent: raw bytes, UTF-8 text, JSON text or a serialised proto.
	Payload []byte
	// DeliverTime is the due time that the receiver saw. With Key it names the delivery: every guarded write asserts it.
	DeliverTime time.Time
	// Token is the lease's token. It is dead once the lease has been renewed.
	Token string
	// LeaseEnd is the database's stamp of the lease's end. It is for people to read; nothing is decided by it.
	LeaseEnd time.Time
	// LastOfBatch says that the service sends this batch no further message.
	LastOfBatch bool
	// Priority is the message's priority; 0 on a native queue, which has none.
	Priority int
	// Record is what is known of earlier deliveries: from the queue itself where it keeps that, or from Ledger.Begin. Nil
	// where nobody has asked yet, as with what a native queue has just delivered.
	Record *Record
}

// Outgoing is a message to send.
type Outgoing struct {
	Key     spanner.Key
	Payload []byte
	// DeliverTime is when the message becomes due; the zero time means now, by the database's clock.
	DeliverTime time.Time
	// Priority orders the messages that are due: 0 goes first. Queues without priorities refuse all others. A message that
	// Tx sends again keeps its own, whatever this says.
	Priority int
}

// ReceiveRequest says what one receive query asks for.
type ReceiveRequest struct {
	// MaxDuration is how long the stream stays open. It is rounded up to whole seconds.
	MaxDuration time.Duration
	// MaxBatch is how many messages the service may send at once; 0 leaves it to the service.
	MaxBatch int
}

// Renewal is the answer to one renewed token. A token that got no answer is not in the answers at all: it was dead, or
// its answer was an earlier, unseen execution of the same query.
type Renewal struct {
	// Token replaces the renewed one. It is empty when the service could not renew.
	Token string
	// LeaseEnd is the database's stamp of the new end.
	LeaseEnd time.Time
}

// Presence is what a probe of one delivery found.
type Presence int

const (
	// Gone means that no message of that key is in the queue.
	Gone Presence = iota
	// Moved means that the key is there with another DeliverTime: another delivery, or another message.
	Moved
	// Present means that the very delivery is still there, unacknowledged.
	Present
)

// Stats is a queue's state at one moment.
type Stats struct {
	Ready, Delayed int64
	// OldestAge is how long the oldest ready message has been due; 0 when none is.
	OldestAge time.Duration
}
