package table

import (
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
	"github.com/spanqueue/spanqueue/schema"
)

// Options change how a queue table is served. The zero value is good.
type Options struct {
	// LeaseLength is how long a lease lasts, from 100 ms to 12 h; 0 means 10 s. It is this process's own: the leases of
	// others last as long as they say.
	LeaseLength time.Duration
	// PollInterval bounds the pause between two looks at an idle queue, from 10 ms to 1 h; 0 means 1 s. A message that is
	// due is picked up within it, plus a read, if somebody has a slot for it.
	PollInterval time.Duration
}

const (
	defaultLease = 10 * time.Second
	minLease     = 100 * time.Millisecond
	maxLease     = 12 * time.Hour
	defaultPoll  = time.Second
	maxPoll      = time.Hour
)

func (o Options) withDefaults() Options {
	if o.LeaseLength == 0 {
		o.LeaseLength = defaultLease
	}
	if o.PollInterval == 0 {
		o.PollInterval = defaultPoll
	}
	return o
}

func (o Options) validate() error {
	if o.LeaseLength < minLease || o.LeaseLength > maxLease {
		return fmt.Errorf("LeaseLength is %v, it must be from %v to %v", o.LeaseLength, minLease, maxLease)
	}
	if o.PollInterval < shortestPoll || o.PollInterval > maxPoll {
		return fmt.Errorf("PollInterval is %v, it must be from %v to %v", o.PollInterval, shortestPoll, maxPoll)
	}
	return nil
}

// Queue is a queue on a table.
type Queue struct {
	client  *spanner.Client
	schema  schema.QueueTable
	options Options

	table   string
	index   string
	columns columnSets
	key     rowcodec.Key
	payload rowcodec.Payload
	tokens  tokens
	dead    deadLetters
	// name is what this table is known by in this process.
	name string

	clock clock
	marks *marks
	crowd crowd
}

var (
	_ backend.Queue    = (*Queue)(nil)
	_ backend.Releaser = (*Queue)(nil)
	_ backend.Ledger   = (*Queue)(nil)

	_ backend.Prioritizer = (*Queue)(nil)
)

// New makes the queue, or says what of its definition cannot be served.
func New(client *spanner.Client, t schema.QueueTable, o Options) (*Queue, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	key, err := rowcodec.NewKey(t.Queue)
	if err != nil {
		return nil, err
	}
	q := &Queue{
		client:  client,
		schema:  t,
		options: o,
		table:   t.Queue.Name,
		index:   t.IndexName(),
		columns: newColumnSets(t, key.Columns()),
		key:     key,
		payload: rowcodec.NewPayload(t.Queue.Payload),
		dead:    newDeadLetters(t, key.Columns()),
		name:    client.DatabaseName() + "/" + strings.ToLower(t.Queue.Name),
		marks:   newMarks(t.ShardCount(), t.PriorityCount()),
	}
	if q.tokens, err = newTokens(t.Queue, key); err != nil {
		return nil, err
	}
	process.know(q.name, q.marks)
	return q, nil
}

// Definition implements backend.Queue.
func (q *Queue) Definition() schema.Queue { return q.schema.Queue }

// Client implements backend.Queue.
func (q *Queue) Client() *spanner.Client { return q.client }

// LeaseLength implements backend.Queue.
func (q *Queue) LeaseLength() time.Duration { return q.options.LeaseLength }

// SamePayload implements backend.Queue.
func (q *Queue) SamePayload(a, b []byte) bool { return q.payload.Equal(a, b) }

// Check implements backend.Queue.
func (q *Queue) Check(m backend.Outgoing) (backend.Outgoing, error) {
	key, err := q.key.Normalize(m.Key)
	if err != nil {
		return m, err
	}
	if err := q.payload.Check(m.Payload); err != nil {
		return m, err
	}
	if n := q.schema.PriorityCount(); m.Priority < 0 || m.Priority >= n {
		return m, fmt.Errorf("the message has Priority %d, this queue table has the priorities 0 to %d", m.Priority, n-1)
	}
	m.Key = key
	return m, backend.CheckDeliverTime(m.DeliverTime)
}
