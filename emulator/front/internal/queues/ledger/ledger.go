package ledger

import (
	"container/heap"
	"sync"
	"time"
)

// tick is the grain in which leases end for the queue: what runs out within the same tick comes back together, so that
// a busy queue looks for returned messages a few times a second and not once for each. The lease itself, its stamp
// and its token, ends on time.
const tick = 50 * time.Millisecond

// ID names one message.
type ID struct {
	Key        string // the key, in any encoding that is equal for equal keys
	Generation string
}

// Config sets the times of a ledger.
type Config struct {
	// LeaseLength is how long a lease lasts, from Grant and from each Renew. It must be positive.
	LeaseLength time.Duration
	// Redelivery is how long a message rests after its lease has ended: after its first delivery, its second, and so
	// on; the last one holds for all that follow. Nil: it comes back as soon as its lease has ended.
	Redelivery []time.Duration
}

// Ledger is the book of one queue. Its methods may be called from several goroutines and never block for long.
type Ledger struct {
	cfg   Config
	begun time.Time

	mu       sync.Mutex
	byKey    map[string]*message
	byToken  map[string]*lease
	expiring []*lease // in the order in which they end, see expireLocked
	waiting  waiting
	ready    ready
	epoch    uint64
	counts   Counts
}

// Counts are deliveries since the ledger was made. What was released is none.
type Counts struct {
	All   int64
	Again int64 // of a message that had been delivered before
}

// Counts returns the deliveries so far.
func (l *Ledger) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

type state int

const (
	stateWaiting state = iota
	stateReady
	stateOffered
	stateGone
)

type message struct {
	id         ID
	state      state
	at         time.Time // when a waiting message becomes ready
	heapIndex  int       // its place in waiting
	seq        uint64    // its place in ready
	lease      *lease    // its last lease, perhaps over; nil before the first
	deliveries int
	epoch      uint64 // the ledger's epoch when it was learned
}

// New returns an empty ledger.
func New(cfg Config) *Ledger {
	return &Ledger{
		cfg:     cfg,
		begun:   time.Now(),
		byKey:   make(map[string]*message),
		byToken: make(map[string]*lease),
	}
}

// Learn tells the ledger that the message stands in the queue and is due at the given time. What is known already
// stays as it is. Another generation of a known key replaces it: the old message is gone.
func (l *Ledger) Learn(id ID, due time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.byKey[id.Key]; m != nil {
		if m.id == id {
			return
		}
		l.forgetLocked(m)
	}
	m := &message{id: id, at: due, epoch: l.epoch}
	l.byKey[id.Key] = m
	heap.Push(&l.waiting, m)
}

// Forget tells the ledger that the message's row is gone. An unknown message is no error.
func (l *Ledger) Forget(id ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.byKey[id.Key]; m != nil && m.id == id {
		l.forgetLocked(m)
	}
}

func (l *Ledger) forgetLocked(m *message) {
	switch m.state {
	case stateWaiting:
		heap.Remove(&l.waiting, m.heapIndex)
	case stateReady:
		l.ready.remove(m.seq)
	}
	m.state = stateGone
	delete(l.byKey, m.id.Key)
}

// Next returns when the next waiting message becomes ready; false if none waits. It may be past.
func (l *Ledger) Next() (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		return time.Time{}, false
	}
	return l.waiting[0].at, true
}

// Len returns how many messages are known.
func (l *Ledger) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.byKey)
}

// BeginSweep starts a comparison of the ledger with all rows of the queue: read the rows after it, Learn them, and
// give its result to Sweep.
func (l *Ledger) BeginSweep() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epoch++
	return l.epoch
}

// Sweep forgets the messages that were known before BeginSweep and for which present says false: it is asked about the
// rows that were read between the two.
func (l *Ledger) Sweep(begun uint64, present func(ID) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.byKey {
		if m.epoch < begun && !present(m.id) {
			l.forgetLocked(m)
		}
	}
}

// ripenLocked moves what has come of age from waiting to ready.
func (l *Ledger) ripenLocked(now time.Time) {
	for len(l.waiting) > 0 && !l.waiting[0].at.After(now) {
		m := heap.Pop(&l.waiting).(*message)
		l.readyLocked(m)
	}
}

func (l *Ledger) readyLocked(m *message) {
	m.state = stateReady
	l.ready.push(m)
}

// waiting is a heap by the time at which a message becomes ready.
type waiting []*message

func (w waiting) Len() int           { return len(w) }
func (w waiting) Less(i, j int) bool { return w[i].at.Before(w[j].at) }
func (w waiting) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].heapIndex, w[j].heapIndex = i, j
}
func (w *waiting) Push(x any) {
	m := x.(*message)
	m.state, m.heapIndex = stateWaiting, len(*w)
	*w = append(*w, m)
}
func (w *waiting) Pop() any {
	last := len(*w) - 1
	m := (*w)[last]
	(*w)[last] = nil
	*w = (*w)[:last]
	return m
}
