package queue

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/native"
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
	leaseLength time.Duration
}

// LeaseLength tells the queue how long a lease lasts, where it is not the service's 10 s: on an emulator that was
// started with another length.
func LeaseLength(d time.Duration) Option {
	return func(o *options) { o.leaseLength = d }
}

// New returns the queue of the given definition. It sends nothing: whether the queue is there shows at its first use.
// It refuses what it could not serve, such as a FLOAT64 key column.
func New(client *spanner.Client, definition schema.Queue, opts ...Option) (*Queue, error) {
	if client == nil {
		return nil, invalid("the client is nil")
	}
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	if o.leaseLength < 0 {
		return nil, invalid("LeaseLength is %v, it must not be negative", o.leaseLength)
	}
	b, err := native.New(client, definition, native.Options{LeaseLength: o.leaseLength})
	if err != nil {
		return nil, fmt.Errorf("%w: queue %s: %w", ErrInvalid, definition.Name, err)
	}
	return FromBackend(b), nil
}

// Open looks the queue up in the database's INFORMATION_SCHEMA and returns it. It is a convenience: what the service
// shows there of a queue is not documented, and a role sees only what it may use. Where the definition is known, New
// needs no look-up.
func Open(ctx context.Context, client *spanner.Client, name string, opts ...Option) (*Queue, error) {
	if client == nil {
		return nil, invalid("the client is nil")
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
