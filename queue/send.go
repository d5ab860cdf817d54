package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"google.golang.org/grpc/codes"
)

// Outgoing is a message to send.
type Outgoing struct {
	// Key has one part for each key column of the queue, in the order of its primary key.
	Key spanner.Key
	// Payload is what the handler will get: raw bytes, UTF-8 text, JSON text or a serialised proto, by the queue's
	// payload type. Nil is an empty payload, which a JSON or proto queue may refuse. Above 4 KB a Spanner queue delivers
	// more slowly: store the body in a table and send its key.
	Payload []byte
	// DeliverTime is when the message becomes due. The zero time means now, by the database's clock. A time in the past
	// also means now; Spanner may replace it, a queue table keeps it.
	DeliverTime time.Time
	// Priority orders the messages of a queue table that are due: 0 goes first, and QueueTable.Priorities says how many
	// there are. Spanner queues have no priorities and refuse all but 0.
	Priority int
}

// SendOption changes a Send call.
type SendOption func(*sendOptions)

type sendOptions struct {
	orIgnore bool
}

// OrIgnore lets a send pass when the key is in the queue already with the same payload: nothing is sent then. With
// another payload that message fails with ErrMismatch, and the others are sent. It costs a read of the keys.
func OrIgnore() SendOption {
	return func(o *sendOptions) { o.orIgnore = true }
}

// Limits of one commit, well below Spanner's own: 80,000 mutated cells and 100 MB.
const (
	chunkMessages = 1000
	chunkBytes    = 16 << 20
)

// Send sends messages in transactions of its own: one for up to 1,000 messages and 16 MiB, more for more. Use
// SendMutation to send in a transaction of yours.
//
// Every message is checked first; when one could not be stored, nothing is sent and the error wraps ErrInvalid and names
// it. A key that is in the queue already fails its chunk with ErrExists. With several chunks those before the failing
// one have been sent, and the error is a *SendError that says how many. When a commit's outcome is unknown see the
// package comment.
func (q *Queue) Send(ctx context.Context, messages []Outgoing, opts ...SendOption) error {
	var o sendOptions
	for _, opt := range opts {
		opt(&o)
	}
	out, err := q.check(messages)
	if err != nil {
		return err
	}
	sent := 0
	var mismatches []error
	for _, chunk := range chunks(out) {
		if o.orIgnore {
			err = q.sendOrIgnore(ctx, chunk, &mismatches)
		} else {
			err = q.backend.Send(ctx, chunk)
		}
		if err != nil {
			if spanner.ErrCode(err) == codes.AlreadyExists {
				err = fmt.Errorf("%w: %w", ErrExists, err)
			}
			return errors.Join(append(mismatches, &SendError{Queue: q.Name(), Sent: sent, Of: len(out), Err: err})...)
		}
		sent += len(chunk)
	}
	return errors.Join(mismatches...)
}

// SendError says how far a Send call came.
type SendError struct {
	Queue string
	// Sent counts the messages of the chunks that were committed; they are the first of those that were given.
	Sent int
	// Of counts the messages that were given.
	Of int
	// Err is why the next chunk failed. The chunk was sent whole or not at all; when the outcome of its commit is
	// unknown, which of the two is unknown.
	Err error
}

func (e *SendError) Error() string {
	return fmt.Sprintf("queue: send to %s: %d of %d messages were sent, then: %v", e.Queue, e.Sent, e.Of, e.Err)
}

func (e *SendError) Unwrap() error { return e.Err }

func (q *Queue) sendOrIgnore(ctx context.Context, chunk []backend.Outgoing, mismatches *[]error) error {
	taken, err := q.backend.SendOrIgnore(ctx, chunk)
	if err != nil {
		return err
	}
	for i, m := range chunk {
		if there, ok := taken[i]; ok && !q.backend.SamePayload(there.Payload, m.Payload) {
			*mismatches = append(*mismatches, fmt.Errorf("%w: queue %s, key %v, due %s", ErrMismatch, q.Name(), m.Key,
				there.DeliverTime.UTC().Format(time.RFC3339Nano)))
		}
	}
	return nil
}

// SendMutation returns the mutation that sends the message in the transaction it is buffered in: BufferWrite of a
// read-write transaction, or Client.Apply.
func (q *Queue) SendMutation(m Outgoing) (*spanner.Mutation, error) {
	out, err := q.check([]Outgoing{m})
	if err != nil {
		return nil, err
	}
	return q.backend.SendMutation(out[0])
}

// SendStatement returns the INSERT that sends the message in the transaction it is executed in. A mutation is cheaper;
// a statement is for a transaction whose later statements must see the message.
func (q *Queue) SendStatement(m Outgoing) (spanner.Statement, error) {
	out, err := q.check([]Outgoing{m})
	if err != nil {
		return spanner.Statement{}, err
	}
	return q.backend.SendStatement(out[0])
}

// check refuses what could not be stored, and returns the messages with their keys in the types of this package.
func (q *Queue) check(messages []Outgoing) ([]backend.Outgoing, error) {
	out := make([]backend.Outgoing, len(messages))
	for i, m := range messages {
		checked, err := q.backend.Check(backend.Outgoing{
			Key: m.Key, Payload: m.Payload, DeliverTime: m.DeliverTime, Priority: m.Priority,
		})
		if err != nil {
			return nil, fmt.Errorf("%w: message %d of %d for queue %s: %w", ErrInvalid, i+1, len(messages), q.Name(), err)
		}
		out[i] = checked
	}
	return out, nil
}

func chunks(messages []backend.Outgoing) [][]backend.Outgoing {
	var all [][]backend.Outgoing
	from, size := 0, 0
	for i, m := range messages {
		if i > from && (i-from == chunkMessages || size+len(m.Payload) > chunkBytes) {
			all = append(all, messages[from:i])
			from, size = i, 0
		}
		size += len(m.Payload)
	}
	if from < len(messages) {
		all = append(all, messages[from:])
	}
	return all
}
