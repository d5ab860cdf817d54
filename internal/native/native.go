package native

import (
	"strings"
	"sync/atomic"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
	"github.com/spanqueue/spanqueue/schema"
)

// serviceLease is the lease length of the service: fixed.
const serviceLease = 10 * time.Second

// Options change how a queue is served.
type Options struct {
	// LeaseLength is how long a lease lasts; 0 means the service's 10 s.
	LeaseLength time.Duration
}

// Queue is a native queue.
type Queue struct {
	client      *spanner.Client
	definition  schema.Queue
	leaseLength time.Duration

	key     rowcodec.Key
	payload rowcodec.Payload
	sql     statements
	columns []string // key columns, Payload, DeliverTime
	ledger  ledger

	clock backend.Clock
	// cannotSelect is set once the database has refused a read of the queue: this role may only delete.
	cannotSelect atomic.Bool
}

var _ backend.Queue = (*Queue)(nil)

// New makes the queue, or says what of its definition cannot be served.
func New(client *spanner.Client, definition schema.Queue, o Options) (*Queue, error) {
	if err := definition.Validate(); err != nil {
		return nil, err
	}
	key, err := rowcodec.NewKey(definition)
	if err != nil {
		return nil, err
	}
	if o.LeaseLength == 0 {
		o.LeaseLength = serviceLease
	}
	q := &Queue{
		client:      client,
		definition:  definition,
		leaseLength: o.LeaseLength,
		key:         key,
		payload:     rowcodec.NewPayload(definition.Payload),
	}
	q.columns = append(key.Columns(), schema.PayloadColumn, schema.DeliverTimeColumn)
	q.ledger = newLedger(definition, key.Columns())
	q.sql = newStatements(definition.Name, key.Columns(), q.payload)
	return q, nil
}

// Definition implements backend.Queue.
func (q *Queue) Definition() schema.Queue { return q.definition }

// Client implements backend.Queue.
func (q *Queue) Client() *spanner.Client { return q.client }

// LeaseLength implements backend.Queue.
func (q *Queue) LeaseLength() time.Duration { return q.leaseLength }

// SamePayload implements backend.Queue.
func (q *Queue) SamePayload(a, b []byte) bool { return q.payload.Equal(a, b) }

// delivery reads a row that was selected with the columns of q.columns in front.
func (q *Queue) delivery(row *spanner.Row) (backend.Delivery, error) {
	var d backend.Delivery
	var err error
	if d.Key, err = q.key.Read(row); err != nil {
		return d, err
	}
	n := len(d.Key)
	if d.Payload, err = q.payload.Read(row, n); err != nil {
		return d, err
	}
	return d, row.Column(n+1, &d.DeliverTime)
}

// tag is the transaction tag of what this package does by itself.
func (q *Queue) tag(verb string) string { return backend.Tag(verb + "=" + q.definition.Name) }

func quote(identifier string) string { return "`" + strings.ReplaceAll(identifier, "`", "\\`") + "`" }
