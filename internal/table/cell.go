package table

import (
	"sync"
	"time"

	"cloud.google.com/go/spanner"
)

// cell is one stretch of the index in which messages lie by the time they become visible: one shard, one priority.
type cell struct {
	shard, priority int64
}

// compare orders cells as the index does.
func (c cell) compare(d cell) int {
	if c.shard != d.shard {
		return int(c.shard - d.shard)
	}
	return int(c.priority - d.priority)
}

const (
	// markMargin is how far a low-water mark stays behind what was seen: a transaction that sends a message may take so
	// long from the moment at which the message's time was written down to its commit.
	markMargin = 10 * time.Second
	// fullScan is how long a cell is read from its mark only. Whatever has come in below the mark is found by the next
	// read from the cell's beginning.
	fullScan = 30 * time.Second
)

// marks remembers for each cell below which time nothing is left: where messages were claimed and acknowledged, the
// database keeps what is deleted for hours, and a read from the beginning wades through it.
type marks struct {
	mu    sync.Mutex
	cells map[cell]*mark
}

type mark struct {
	low    time.Time // by the database; zero: read from the beginning
	fullAt time.Time // when to read from the beginning again, by the monotonic clock
	// A message that becomes visible at held is on its way: until heldUntil reads begin no later than there.
	held, heldUntil time.Time
}

func newMarks(shards, priorities int) *marks {
	m := &marks{cells: make(map[cell]*mark, shards*priorities)}
	for s := range shards {
		for p := range priorities {
			m.cells[cell{int64(s), int64(p)}] = &mark{}
		}
	}
	return m
}

// from returns where to begin to read a cell; the zero time is its beginning.
func (m *marks) from(c cell, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.cells[c]
	switch {
	case !now.Before(k.fullAt):
		return time.Time{}
	case now.Before(k.heldUntil) && k.held.Before(k.low):
		return k.held
	}
	return k.low
}

// seen takes in what a read of a cell has found: it began at from, its first message becomes visible at first (zero: it
// found none), and at the time past the database had answered. random is from 0 up to 1.
func (m *marks) seen(c cell, from, first, past, now time.Time, random float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.cells[c]
	low := past
	if !first.IsZero() && first.Before(low) {
		low = first
	}
	low = low.Add(-markMargin)
	if from.IsZero() {
		k.low = low
		k.fullAt = now.Add(fullScan - time.Duration(random*float64(fullScan)/4))
	} else if low.After(k.low) {
		k.low = low
	}
}

// expect makes sure that a message which becomes visible at the given time is seen though it may lie below its cell's mark.
// It is on its way: its transaction has markMargin to commit.
func (m *marks) expect(c cell, visible, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.cells[c]
	if !ok {
		return
	}
	if !now.Before(k.heldUntil) || visible.Before(k.held) {
		k.held = visible
	}
	k.heldUntil = now.Add(markMargin)
}

// span is a stretch of the index to read: a cell from a time on, up to another, both included.
type span struct {
	cell
	from, until time.Time
}

// keyRange is the span as the Read API has it. A queue without shards has no Shard in its index.
func (s span) keyRange(sharded bool) spanner.KeyRange {
	prefix := spanner.Key{s.priority}
	if sharded {
		prefix = spanner.Key{s.shard, s.priority}
	}
	r := spanner.KeyRange{Start: prefix, End: append(prefix[:len(prefix):len(prefix)], s.until), Kind: spanner.ClosedClosed}
	if !s.from.IsZero() {
		r.Start = append(prefix[:len(prefix):len(prefix)], s.from)
	}
	return r
}

// groups splits the shards, in random order, into groups of 1, 1, 2, 4 and so on. A look at a busy queue is done after the
// first, and one that finds nothing has made few reads.
func groups(shards []int64) [][]int64 {
	var out [][]int64
	for size := 1; len(shards) > 0; {
		n := min(size, len(shards))
		out = append(out, shards[:n:n])
		shards = shards[n:]
		if len(out) > 1 {
			size *= 2
		}
	}
	return out
}
