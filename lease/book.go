package lease

import (
	"context"
	"sync"
	"time"

	"github.com/spanqueue/spanqueue/internal/rowcodec"
	"github.com/spanqueue/spanqueue/queue"
)

// book is what a Receiver knows: every message that it has, waiting or in hand, and who waits for one. The stream writes
// arrivals into it, the keeper renewals, the holders what they want; it calls nobody while its mutex is held.
type book struct {
	terms  terms
	config Config
	clock  clock

	wake   chan struct{} // to the keeper: there is something to do before its timer; one slot, signals merge
	demand chan struct{} // to the stream: more may be wanted; one slot, signals merge

	mu      sync.Mutex
	index   map[string]*entry // every entry that is not gone, by delivery
	fresh   map[*entry]struct{}
	line    line
	takers  []*taker
	held    int
	freed   decaying
	confirm bool               // a holder waits for the first renewal of its lease
	next    time.Time          // when the keeper has to look again; zero: never
	close   context.CancelFunc // closes the open stream; nil when none is open
	closing bool               // it was asked to close
	inBatch bool               // it has begun a batch and not ended it
	full    bool               // the last one was closed because enough was here
	begun   time.Time          // when the first message was handed out
	stuck   bool               // messages were let go, and no slot has become free since
	letGo   []*queue.Message   // to be given back to the queue, if it can take them back
	stopped bool
	stats   Stats
}

func newBook(t terms, c Config, by clock) *book {
	return &book{
		terms:  t,
		config: c,
		clock:  by,
		wake:   make(chan struct{}, 1),
		demand: make(chan struct{}, 1),
		index:  make(map[string]*entry),
		fresh:  make(map[*entry]struct{}),
		freed:  decaying{over: t.length},
	}
}

// deliveryID names a delivery: the key and the due time.
func deliveryID(m *queue.Message) string {
	due := m.DeliverTime
	return rowcodec.ID(m.Key) + due.UTC().Format("@2006-01-02T15:04:05.000000000")
}

// arrived takes in a message from the stream, which was on its way for the given time at least. A delivery that is here
// already is never started a second time: a new lease of it goes to the one that is here.
func (b *book) arrived(m *queue.Message, behind time.Duration) {
	now := b.clock.now()
	received := now.Add(-behind)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return
	}
	b.inBatch = !m.LastOfBatch
	defer b.checkStreamLocked(now)
	id := deliveryID(m)
	if e := b.index[id]; e != nil {
		b.arrivedAgainLocked(e, m, received, now)
		return
	}
	b.stats.Received++
	e := &entry{
		message:  m,
		since:    now,
		token:    m.Lease.Token,
		received: received,
		renewAt:  b.terms.renewAt(received, random()),
	}
	b.index[id] = e
	b.fresh[e] = struct{}{}
	b.line.push(e)
	b.lookAtLocked(e)
	b.serveLocked(now)
}

func (b *book) arrivedAgainLocked(e *entry, m *queue.Message, received, now time.Time) {
	if e.token == m.Lease.Token {
		return // the same row once more: a broken stream was resumed
	}
	b.stats.Again++
	if e.stopped || !e.deferred.IsZero() || (e.certain && e.ended != nil) {
		return // its holder has been told to end; the new lease runs out and the message goes on elsewhere
	}
	// The database has given the message away again, and we got it: the lease lives on under the new token, which some
	// kinds of queue want to see when the message is acknowledged. The old bound holds until the new token was renewed, so
	// that is done now.
	e.message = m
	e.token, e.received, e.renewAt, e.ended = m.Lease.Token, received, now, nil
	e.generation++
	e.calls, e.failures, e.refused = 0, 0, false
	if e.renewed.IsZero() {
		b.fresh[e] = struct{}{}
	}
	b.lookAtLocked(e)
	b.serveLocked(now)
}

// lookAtLocked makes sure that the keeper looks at the entry in time.
func (b *book) lookAtLocked(e *entry) {
	at := e.wakeAt(b.terms, b.config.MaxWait)
	if at.IsZero() || (!b.next.IsZero() && !at.Before(b.next)) {
		return
	}
	b.next = at
	signal(b.wake)
}

// forgetLocked takes the entry out of the books.
func (b *book) forgetLocked(e *entry) {
	e.place = gone
	e.token = ""
	b.unindexLocked(e)
	delete(b.fresh, e)
	e.announceLocked()
}

// unindexLocked takes the entry out of the index, where another one may have its place.
func (b *book) unindexLocked(e *entry) {
	if id := deliveryID(e.message); b.index[id] == e {
		delete(b.index, id)
	}
}

// letGoLocked leaves a message that waits to others.
func (b *book) letGoLocked(e *entry) {
	b.stats.LetGo++
	b.letGo = append(b.letGo, e.message)
	b.forgetLocked(e)
}

// announceLocked tells those who wait in Confirm to look again.
func (e *entry) announceLocked() {
	if e.changed != nil {
		close(e.changed)
		e.changed = nil
	}
}

// stop ends the taking: what waits is forgotten and not renewed any more, and whoever waits for a message is sent away.
func (b *book) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	for _, e := range b.line.entries {
		b.letGoLocked(e)
	}
	b.line = line{}
	for _, t := range b.takers {
		close(t.ready)
	}
	b.takers = nil
	signal(b.wake)
}

// signal sends without blocking: one signal that waits is enough.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
