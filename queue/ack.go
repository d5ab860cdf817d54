package queue

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
)

// Transaction is a read-write transaction of Google's client: a *spanner.ReadWriteTransaction, or a
// *spanner.ReadWriteStmtBasedTransaction that is held by hand.
type Transaction interface {
	Update(context.Context, spanner.Statement) (int64, error)
	Query(context.Context, spanner.Statement) *spanner.RowIterator
	ReadWithOptions(ctx context.Context, table string, keys spanner.KeySet, columns []string, opts *spanner.ReadOptions) *spanner.RowIterator
	BufferWrite([]*spanner.Mutation) error
}

// Ack acknowledges the message in the transaction: it deletes the very delivery that m is, asserting that it is there.
// The acknowledgement counts when the transaction commits, together with everything else in it.
//
// When the delivery is gone the error wraps ErrNotHeld, and when Ack fails in any way the transaction cannot commit any
// more. Return the error from the transaction function, or Rollback a transaction held by hand. As the first statement
// of a transaction function a miss in a Spanner queue makes the client run the function a second time.
//
// Ack first, then work: a miss then costs no work, and of two holders of one message one commits.
func (q *Queue) Ack(ctx context.Context, tx Transaction, m *Message) error {
	return q.backend.Ack(ctx, tx, m.Delivery())
}

// AckAll acknowledges those of the messages that are held, in two RPCs however many they are, and returns those that are
// not. The transaction goes on for the others; the caller must not do the work of the missing ones. A failure of the
// call itself leaves the transaction unable to commit.
func (q *Queue) AckAll(ctx context.Context, tx Transaction, messages []*Message) (missing []*Message, err error) {
	deliveries := make([]backend.Delivery, len(messages))
	for i, m := range messages {
		deliveries[i] = m.Delivery()
	}
	indexes, err := q.backend.AckAll(ctx, tx, deliveries)
	for _, i := range indexes {
		missing = append(missing, messages[i])
	}
	return missing, err
}

// Resend acknowledges the message and sends it again under the same key, due at the given time, in the same transaction:
// the way to postpone, to retry later and to move a payload forward. A nil payload keeps the message's own. The priority is
// kept, the attempts begin anew: a loop of yours that gives up some day counts in the payload (a processor counts by itself).
//
// Choose the time before the transaction function, once, and never one that the message had before: the function may run
// several times, and a run that meets its own earlier commit must miss. ServerTime plus a delay is such a time. A time
// equal to m.DeliverTime is refused with ErrInvalid, as is what could not be stored. A miss is as with Ack, and whatever
// the error is, the transaction cannot commit any more: half a resend would lose the message or do its work twice.
func (q *Queue) Resend(ctx context.Context, tx Transaction, m *Message, at time.Time, payload []byte) (err error) {
	defer func() {
		if err != nil {
			backend.Poison(tx)
		}
	}()
	if at.Equal(m.DeliverTime) {
		return invalid("resend of %v: the new DeliverTime is the old one, and could not be told from it", m)
	}
	if at.IsZero() {
		return invalid("resend of %v needs a time: ServerTime gives the database's", m)
	}
	if payload == nil {
		payload = m.Payload
	}
	out, err := q.check([]Outgoing{{Key: m.Key, Payload: payload, DeliverTime: at, Priority: m.priority}})
	if err != nil {
		return err
	}
	if err := q.Ack(ctx, tx, m); err != nil {
		return err
	}
	mutation, err := q.backend.SendMutation(out[0])
	if err != nil {
		return err
	}
	return tx.BufferWrite([]*spanner.Mutation{mutation})
}

// Presence is what Probe found.
type Presence = backend.Presence

const (
	// Gone means that no message of that key is in the queue.
	Gone = backend.Gone
	// Moved means that the key is in the queue as another delivery: it was sent again, with another DeliverTime, or another
	// receiver of a queue table has it.
	Moved = backend.Moved
	// Present means that the very delivery is still in the queue, unacknowledged.
	Present = backend.Present
)

// Probe says, by a strong read, whether the delivery is still in the queue: the question to ask when the outcome of a
// commit that acknowledged it is unknown. Gone and Moved mean that it was settled, by that commit or by another holder;
// in a queue table Moved may also mean that another holder is at it, and that the commit can land no more. Present means
// that the commit had not landed when the read was answered; it may still land later, and only a guarded write can rule
// that out.
//
// A producer asks with a message of its own making that has nothing but a Key whether that key is still in the queue: Gone
// means that it is not, Moved that it is. A key that could not be this queue's is refused with ErrInvalid.
func (q *Queue) Probe(ctx context.Context, m *Message) (Presence, error) {
	d := m.Delivery()
	parts, err := rowcodec.NewKey(q.Definition())
	if err == nil {
		d.Key, err = parts.Normalize(d.Key)
	}
	if err != nil {
		return Gone, invalid("probe of %v in %s: %w", m, q.Name(), err)
	}
	presence, err := q.backend.Probe(ctx, d)
	if err != nil {
		return presence, fmt.Errorf("queue: probe of %v in %s: %w", m, q.Name(), err)
	}
	return presence, nil
}
