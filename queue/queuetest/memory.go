package queuetest

import (
	"fmt"
	"sync"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/schema"
)

// Options change a memory queue. The zero value is good.
type Options struct {
	// LeaseLength is how long a lease lasts; 0 means the service's 10 s.
	LeaseLength time.Duration
	// Offset is how far the queue's clock is ahead of this machine's at first.
	Offset time.Duration
}

const serviceLease = 10 * time.Second

// Memory is a queue in memory. Make one with New.
type Memory struct {
	definition  schema.Queue
	key         rowcodec.Key
	payload     rowcodec.Payload
	leaseLength time.Duration
	locks       locks

	mu      sync.Mutex
	offset  time.Duration
	rows    map[string]*row // by key
	tokens  map[string]*row // every token that was given; nil once the message was acknowledged, absent once it is dead
	tokenNo int64
	records map[string]record // what is known of earlier deliveries, by key
	dead    []Dead
	changed chan struct{} // closed and replaced whenever a message may have become available
	faults  map[Op]func(n int) Fault
	calls   map[Op]int
	counts  Counts
}

var _ backend.Queue = (*Memory)(nil)

// New makes an empty queue of the given definition. It panics when no queue could be made of it.
func New(definition schema.Queue, o Options) *Memory {
	if err := definition.Validate(); err != nil {
		panic(fmt.Sprintf("queuetest: queue %s: %v", definition.Name, err))
	}
	key, err := rowcodec.NewKey(definition)
	if err != nil {
		panic(fmt.Sprintf("queuetest: queue %s: %v", definition.Name, err))
	}
	if o.LeaseLength < 0 {
		panic(fmt.Sprintf("queuetest: LeaseLength is %v, it must not be negative", o.LeaseLength))
	}
	if o.LeaseLength == 0 {
		o.LeaseLength = serviceLease
	}
	return &Memory{
		definition:  definition,
		key:         key,
		payload:     rowcodec.NewPayload(definition.Payload),
		leaseLength: o.LeaseLength,
		locks:       locks{held: make(map[string]*tx)},
		offset:      o.Offset,
		rows:        make(map[string]*row),
		tokens:      make(map[string]*row),
		records:     make(map[string]record),
		changed:     make(chan struct{}),
		faults:      make(map[Op]func(int) Fault),
		calls:       make(map[Op]int),
	}
}

// Queue returns the queue as programs use it.
func (m *Memory) Queue() *queue.Queue { return queue.FromBackend(m) }

// Definition implements the seam below package queue.
func (m *Memory) Definition() schema.Queue { return m.definition }

// Client returns nil: there is no database.
func (m *Memory) Client() *spanner.Client { return nil }

// LeaseLength returns how long a lease lasts.
func (m *Memory) LeaseLength() time.Duration { return m.leaseLength }

// SetOffset sets how far the queue's clock is ahead of this machine's; behind it when negative. Messages that become due
// by it are delivered at once.
func (m *Memory) SetOffset(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.offset = d
	m.wakeLocked()
}

// Now returns the time of the queue's clock.
func (m *Memory) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.nowLocked()
}

// nowLocked has no monotonic part: a stamp of the server is not a reading of our clock.
func (m *Memory) nowLocked() time.Time { return time.Now().Add(m.offset).Round(0).UTC() }

// wakeLocked lets the open streams look again.
func (m *Memory) wakeLocked() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// Counts are what a memory queue has done since it was made.
type Counts struct {
	// Streams counts the receive streams that were opened, Delivered the messages that they handed over.
	Streams, Delivered int
	// RenewCalls counts the renewal calls that were answered or lost, Renewed the leases that they renewed.
	RenewCalls, Renewed int
	// LeasesEnded counts the leases that ended with their message still in the queue.
	LeasesEnded int
	// Commits counts the transactions that were committed, Acked the messages that they took out.
	Commits, Acked int
}

// Counts returns the counts.
func (m *Memory) Counts() Counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for _, r := range m.rows {
		m.endLeaseLocked(r, now)
	}
	return m.counts
}
