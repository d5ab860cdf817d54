package queue

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/deadletter"
)

// ErrNoDeadLetter is wrapped when there is no such dead letter, or none any more: it was redriven or discarded by somebody
// else, or its retention has ended.
var ErrNoDeadLetter = deadletter.ErrGone

// DeadLetter is a message that was given up, in the table that schema.DeadLetters describes.
type DeadLetter struct {
	// Key and DeadAt name the letter: the message, and when it was given up. A key can be sent again and die again.
	Key    spanner.Key
	DeadAt time.Time
	// Payload is the message's, byte for byte. List leaves it out, since it may be large: it is nil there.
	Payload []byte
	// DeliverTime is that of the message's last delivery.
	DeliverTime time.Time
	// Reason is why it was given up, in one of a few fixed words; Error is the text of the last error, or empty.
	Reason, Error string
	// Attempts counts the failures and the starts without an outcome.
	Attempts int
	// FirstAt and LastAt are the first and the last attempt that is known of; zero where none is.
	FirstAt, LastAt time.Time
	// Handler is the handler that had the message last; it may be empty.
	Handler string
	// Priority is the message's, which it has again when it is redriven; 0 where the queue has no priorities.
	Priority int
}

// String names the letter for a log.
func (l *DeadLetter) String() string {
	return fmt.Sprintf("%v dead at %s", l.Key, l.DeadAt.UTC().Format(time.RFC3339Nano))
}

// DeadLetterFilter chooses dead letters: those for which everything holds that is set. The zero value chooses all.
type DeadLetterFilter struct {
	// Key chooses the letters of one message.
	Key spanner.Key
	// Reason and Handler are compared as they are.
	Reason, Handler string
	// Error must occur in the text of the error.
	Error string
	// From and Until bound the time of death: From <= DeadAt < Until.
	From, Until time.Time
}

// DeadLetters are the dead letters of a queue. All methods may be called at the same time, also by several operators.
type DeadLetters struct {
	queue *Queue
	store *deadletter.Store
	err   error // why there is no store
}

// DeadLetters returns the dead letters of the queue. It sends nothing. A queue in memory has none: the methods say so.
func (q *Queue) DeadLetters() *DeadLetters {
	store, err := deadletter.New(q.backend)
	return &DeadLetters{queue: q, store: store, err: err}
}

// List returns up to n letters that the filter chooses, without their payloads: the oldest first, those of one time by
// their keys. after is the letter that the page before ended with; nil begins with the oldest. Its cost grows with the
// table.
func (d *DeadLetters) List(ctx context.Context, f DeadLetterFilter, after *DeadLetter, n int) ([]*DeadLetter, error) {
	if n < 1 {
		return nil, invalid("a list of %d dead letters: it must be at least 1", n)
	}
	filter, err := d.filter(f)
	if err != nil {
		return nil, err
	}
	var from *deadletter.ID
	if after != nil {
		id, err := d.id(after.Key, after.DeadAt)
		if err != nil {
			return nil, err
		}
		from = &id
	}
	letters, err := d.store.Page(ctx, filter, from, n)
	if err != nil {
		return nil, fmt.Errorf("queue: dead letters of %s: %w", d.queue.Name(), err)
	}
	out := make([]*DeadLetter, len(letters))
	for i, l := range letters {
		out[i] = publish(l)
	}
	return out, nil
}

// Get returns one letter with its payload. The error wraps ErrNoDeadLetter when there is none.
func (d *DeadLetters) Get(ctx context.Context, key spanner.Key, deadAt time.Time) (*DeadLetter, error) {
	id, err := d.id(key, deadAt)
	if err != nil {
		return nil, err
	}
	l, err := d.store.Get(ctx, id)
	if err != nil {
		return nil, d.failed(key, deadAt, "get", err)
	}
	return publish(l), nil
}

func publish(l deadletter.Letter) *DeadLetter {
	return &DeadLetter{
		Key: l.Key, DeadAt: l.DeadAt, Payload: l.Payload, DeliverTime: l.DeliverTime, Reason: l.Reason, Error: l.Error,
		Attempts: l.Attempts, FirstAt: l.First, LastAt: l.Last, Handler: l.Handler, Priority: l.Priority,
	}
}

func (d *DeadLetters) id(key spanner.Key, deadAt time.Time) (deadletter.ID, error) {
	if d.err != nil {
		return deadletter.ID{}, d.err
	}
	id, err := d.store.ID(key, deadAt)
	if err != nil {
		return id, invalid("dead letter of %s: %w", d.queue.Name(), err)
	}
	return id, nil
}

func (d *DeadLetters) filter(f DeadLetterFilter) (deadletter.Filter, error) {
	out := deadletter.Filter{Reason: f.Reason, Handler: f.Handler, Error: f.Error, From: f.From, Until: f.Until}
	if f.Key == nil {
		return out, d.err
	}
	id, err := d.id(f.Key, time.Time{})
	out.Key = id.Key
	return out, err
}

// failed says what was done to which letter.
func (d *DeadLetters) failed(key spanner.Key, deadAt time.Time, verb string, err error) error {
	return fmt.Errorf("queue: %s the dead letter of %s, %v: %w", verb, d.queue.Name(), &DeadLetter{Key: key, DeadAt: deadAt}, err)
}
