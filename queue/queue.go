package queue

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/native"
	"github.com/spanqueue/spanqueue/internal/table"
	"github.com/spanqueue/spanqueue/schema"
)

// Queue is one queue of one database. It holds no connection and needs no Close; the client that it was made with must
// outlive it. All methods may be called at the same time.
type Queue struct {
	backend backend.Queue
	columns []string
}

// Option changes how a queue is opened.
type Option func(*options)

type options struct {
	leaseLength  time.Duration
	pollInterval time.Duration
}

// LeaseLength tells the queue how long a lease lasts; zero means 10 s. The leases of a queue table are as long as this
// process wants, from 100 ms to 12 h. Those of a Spanner queue are Spanner's, and always 10 s, but for an emulator that
// was started with another length.
func LeaseLength(d time.Duration) Option {
	return func(o *options) { o.leaseLength = d }
}

// PollInterval bounds the pause between two looks at an idle queue table, and so how late a due message is picked up; from
// 10 ms to 1 h, zero means 1 s. Pauses are shorter while there is something to do. A Spanner queue is not polled, and
// refuses it.
func PollInterval(d time.Duration) Option {
	return func(o *options) { o.pollInterval = d }
}

func apply(opts []Option) options {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// New returns the queue of the given definition. It sends nothing: whether the queue is there shows at its first use.
// It refuses what it could not serve, such as a FLOAT64 key column.
func New(client *spanner.Client, definition schema.Queue, opts ...Option) (*Queue, error) {
	if client == nil {
		return nil, invalid("the client is nil")
	}
	o := apply(opts)
	if o.leaseLength < 0 {
		return nil, invalid("LeaseLength is %v, it must not be negative", o.leaseLength)
	}
	if o.pollInterval != 0 {
		return nil, invalid("PollInterval is %v, but %s is a Spanner queue and is not polled; NewTable opens a queue table",
			o.pollInterval, definition.Name)
	}
	b, err := native.New(client, definition, native.Options{LeaseLength: o.leaseLength})
	if err != nil {
		return nil, fmt.Errorf("%w: queue %s: %w", ErrInvalid, definition.Name, err)
	}
	return FromBackend(b), nil
}

// NewTable returns the queue that the given queue table is. It sends nothing: whether the table is there shows at its first
// use. It refuses what it could not serve, such as a FLOAT64 key column. The dead letters of a processor need the table that
// schema.DeadLetters describes, with the Priorities of the definition; a table of attempts is not needed.
//
// On the public emulator use the front of package emulator, as for Spanner queues: without it the emulator fails the second
// of two transactions that run at once on one client, and a processor's claims, renewals and handlers do.
func NewTable(client *spanner.Client, definition schema.QueueTable, opts ...Option) (*Queue, error) {
	if client == nil {
		return nil, invalid("the client is nil")
	}
	o := apply(opts)
	b, err := table.New(client, definition, table.Options{LeaseLength: o.leaseLength, PollInterval: o.pollInterval})
	if err != nil {
		return nil, fmt.Errorf("%w: queue table %s: %w", ErrInvalid, definition.Queue.Name, err)
	}
	return FromBackend(b), nil
}

// Open looks the queue up in the database's INFORMATION_SCHEMA, a Spanner queue or a queue table, and returns it. It is a
// convenience: what Spanner shows there of a queue is not documented, and a role sees only what it may use. Where the
// definition is known, New and NewTable need no look-up.
func Open(ctx context.Context, client *spanner.Client, name string, opts ...Option) (*Queue, error) {
	if client == nil {
		return nil, invalid("the client is nil")
	}
	if t, found, err := table.Detect(ctx, client, name); err != nil {
		return nil, fmt.Errorf("queue: open %s: %w", name, err)
	} else if found {
		return NewTable(client, t, opts...)
	}
	definition, err := native.Detect(ctx, client, name)
	if err != nil {
		return nil, fmt.Errorf("queue: open %s: %w", name, err)
	}
	return New(client, definition, opts...)
}

// FromBackend makes a queue of a backend. It is for the packages of this module.
func FromBackend(b backend.Queue) *Queue {
	parts := b.Definition().KeyParts()
	columns := make([]string, len(parts))
	for i, part := range parts {
		columns[i] = part.Column
	}
	return &Queue{backend: b, columns: columns}
}

// Backend returns the seam below the queue. It is for the packages of this module.
func (q *Queue) Backend() backend.Queue { return q.backend }

// Name returns the queue's name.
func (q *Queue) Name() string { return q.backend.Definition().Name }

// Definition returns the queue's definition.
func (q *Queue) Definition() schema.Queue { return q.backend.Definition() }

// ServerTime returns the database's time: the last stamp that it gave, carried forward by this machine's monotonic clock,
// or the answer of a query when there is none from the last minute. It is never behind the database and ahead of it by a
// round trip at most, so that ServerTime plus a delay is never too early. This machine's wall clock plays no part.
func (q *Queue) ServerTime(ctx context.Context) (time.Time, error) {
	t, err := q.backend.ServerTime(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("queue: server time: %w", err)
	}
	return t, nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}

func equalName(a, b string) bool { return strings.EqualFold(a, b) }
