package lease

import (
	"context"
	"math"
	"time"
)

// decaying counts events and forgets them over time: at a steady rate its value is about the number of events in the
// time that it forgets over.
type decaying struct {
	over  time.Duration
	value float64
	at    time.Time
}

func (d *decaying) add(now time.Time) {
	d.value = d.read(now) + 1
	d.at = now
}

func (d *decaying) read(now time.Time) float64 {
	if d.value == 0 {
		return 0
	}
	return d.value * math.Exp(-float64(now.Sub(d.at))/float64(d.over))
}

// marks say when a stream is opened and closed, and what it asks for. A stream brings as many messages as are due,
// whatever it asks for, and the server leases them as it sends, so the only ways to take fewer are to leave it unread,
// which lets leases run out unseen, or to close it, which leaves what is on its way to wait out its lease. The latter is
// less, the more so the smaller the batch, and the further apart the marks are the less often it happens. A wide distance
// in turn keeps messages here that others could have.
type marks struct {
	high  int // the stream is closed when so many wait
	low   int // one that was closed is opened again when no more than these wait
	batch int
	short bool
}

const (
	fewSlots = 4
	maxBatch = 20
	// gather is how long the first demand waits for more of it before a stream is opened: workers come one by one.
	gather = 2 * time.Millisecond
)

// marksFor makes the marks for a demand: the slots that are free plus the messages that will be started within a lease if
// slots go on becoming free as they did.
func marksFor(free int, freed float64, c Config) marks {
	want := free + int(freed)
	high := min(max(want, c.LowWater), c.HighWater)
	return marks{
		high:  high,
		low:   high / 4,
		batch: min(max(high/2, 1), maxBatch),
		short: high <= fewSlots,
	}
}

// open says whether a stream is to be opened. One that ended by itself, or broke, is followed by the next at once.
func (m marks) open(waiting int, wasFull bool) bool {
	if wasFull {
		return m.high > 0 && waiting <= m.low
	}
	return waiting < m.high
}

func (m marks) close(waiting int) bool { return waiting >= m.high }

// marksLocked returns the marks for the present demand. After messages were let go because no slot became free, none are
// kept waiting until one does: they would be the same ones.
func (b *book) marksLocked(now time.Time) marks {
	c := b.config
	freed := b.freed.read(now)
	switch {
	case b.stuck:
		c.LowWater = 0
	case b.begun.IsZero() || now.Before(b.begun.Add(b.terms.length/2)):
		if slots := len(b.takers) + b.held; slots > fewSlots {
			freed = max(freed, float64(c.Prefetch*slots))
		}
	}
	return marksFor(len(b.takers), freed, c)
}

// wanted waits until a stream should be opened. It reports false when ctx ended first.
func (b *book) wanted(ctx context.Context) (marks, bool) {
	waited := false
	for {
		b.mu.Lock()
		m := b.marksLocked(b.clock.now())
		open := m.open(b.line.len(), b.full) && b.line.bytes < b.config.MaxBytes
		b.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return marks{}, false
		case open && (waited || !m.short):
			return m, true
		case open:
			waited = sleep(ctx, gather)
			continue
		}
		waited = false
		select {
		case <-b.demand:
		case <-ctx.Done():
			return marks{}, false
		}
	}
}

// opened notes the open stream, and how to close it.
func (b *book) opened(closeStream context.CancelFunc) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.Streams++
	b.close, b.closing, b.full, b.inBatch = closeStream, false, false, false
	b.checkStreamLocked(b.clock.now())
}

// closed notes the stream's end, by an error that nobody here wanted or without one, and reports whether the book had asked
// for it.
func (b *book) closed(err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.close = nil
	if b.closing {
		b.stats.StreamsClosed++
	} else if err != nil {
		b.stats.StreamErrors++
	}
	return b.closing
}

// checkStreamLocked closes the open stream when enough is here. It waits for the end of a batch that has begun: the rest
// of it is leased and on its way, and would wait out its leases before anybody could have it.
func (b *book) checkStreamLocked(now time.Time) {
	if b.close == nil || b.closing {
		return
	}
	m := b.marksLocked(now)
	if b.inBatch {
		m.high += maxBatch // a server that does not end its batches is stopped all the same
	}
	if m.close(b.line.len()) || b.line.bytes >= b.config.MaxBytes {
		b.closing, b.full = true, true
		b.close()
	}
}
