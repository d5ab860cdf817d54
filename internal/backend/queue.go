package backend

import (
	"context"
	"errors"
	"iter"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/schema"
)

// ErrNotHeld says that a guarded write found the delivery gone. Package queue exports it.
var ErrNotHeld = errors.New("queue: message not held")

// Queue is one queue of any kind. Its methods may be called at the same time.
type Queue interface {
	// Definition returns the queue's shape.
	Definition() schema.Queue
	// Client returns the client that the queue works through; nil in memory.
	Client() *spanner.Client

	// Check refuses a message that the queue could not store, and returns it with the key's parts in the types of
	// package rowcodec. All other methods want messages that were checked.
	Check(Outgoing) (Outgoing, error)
	// SamePayload says whether the database would hold the two for one value.
	SamePayload(a, b []byte) bool
	// SendMutation and SendStatement make the write of a send, for a transaction of the caller's.
	SendMutation(Outgoing) (*spanner.Mutation, error)
	SendStatement(Outgoing) (spanner.Statement, error)
	// Send sends all of the messages in one transaction of its own, or none. A key that is taken fails with
	// codes.AlreadyExists.
	Send(context.Context, []Outgoing) error
	// SendOrIgnore sends the messages whose keys are free, in one transaction of its own, and returns what is stored
	// under the keys that were taken, by index.
	SendOrIgnore(context.Context, []Outgoing) (taken map[int]Delivery, err error)

	// Receive opens one receive stream and yields what it brings, in the order of arrival, until the stream ends by
	// itself (no error), the context ends, or the caller stops. An error is the last thing that is yielded. Order among
	// messages is not promised, nor that a message comes once.
	Receive(context.Context, ReceiveRequest) iter.Seq2[Delivery, error]
	// Renew renews leases by one call and returns the answers by the token that was renewed. Partial answers are normal.
	// An error means that nothing is known: each lease may or may not have been renewed.
	Renew(ctx context.Context, tokens []string) (map[string]Renewal, error)
	// LeaseLength is how long a lease lasts from its grant or renewal.
	LeaseLength() time.Duration

	// Ack and AckAll are those of Tx, in a transaction of the caller's.
	Ack(context.Context, SpannerTx, Delivery) error
	AckAll(context.Context, SpannerTx, []Delivery) (missing []int, err error)

	// RunTx runs f in a read-write transaction and commits when f returns nil. f may run several times; what it did in
	// an earlier run is undone. It returns the error of f as f gave it, or the error of the commit.
	RunTx(ctx context.Context, opts TxOptions, f func(context.Context, Tx) error) error

	// Probe says whether the delivery is still in the queue, by a strong read of its own.
	Probe(context.Context, Delivery) (Presence, error)
	// ServerTime returns the database's time: never behind it, ahead of it by a round trip at most.
	ServerTime(context.Context) (time.Time, error)

	// Stats counts the queue's messages by a strong read of the whole queue.
	Stats(context.Context) (Stats, error)
	// Peek returns up to n messages by due time, without leasing them.
	Peek(ctx context.Context, n int) ([]Delivery, error)
	// Purge removes up to n messages, leased or not, in transactions of its own, and returns how many it removed.
	Purge(ctx context.Context, n int) (int, error)
}

// SpannerTx is what the guarded writes need of a transaction of Google's client, run by it or held by hand.
type SpannerTx interface {
	Update(context.Context, spanner.Statement) (int64, error)
	Query(context.Context, spanner.Statement) *spanner.RowIterator
	ReadWithOptions(ctx context.Context, table string, keys spanner.KeySet, columns []string, opts *spanner.ReadOptions) *spanner.RowIterator
	BufferWrite([]*spanner.Mutation) error
}

// TxOptions are what RunTx passes to the database.
type TxOptions struct {
	// Tag becomes the transaction tag, cut to what the database takes; the commit and all statements carry it.
	Tag string
}

// Tx is a transaction on a queue. It may be used until the function that it was given to returns.
type Tx interface {
	// Spanner returns the transaction of Google's client. It is nil in memory, where none can be made.
	Spanner() *spanner.ReadWriteTransaction
	// Ack takes the delivery out of the queue, asserting that it is there. A miss is ErrNotHeld, and nothing of the
	// transaction can commit any more.
	Ack(context.Context, Delivery) error
	// AckAll takes out the deliveries that are there and returns the indexes of those that are not; the transaction goes
	// on for the others.
	AckAll(context.Context, []Delivery) (missing []int, err error)
	// Send sends a message when the transaction commits. After Ack of the same key it is a resend.
	Send(context.Context, Outgoing) error
}
