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
// whatever it asks for, so the only way to take fewer is to close it, which leaves what is on its way to wait out its
// lease. The batch is kept small against the distance of the marks, so that this is little.
type marks struct {
	high  int // the stream is closed when so many wait
	low   int // it is opened when no more than these wait
	batch int
	short bool
}

const (
	fewSlots = 4
	maxBatch = 100
	// outgrown is how many times larger a batch must be wanted before a stream is opened anew to get it.
	outgrown = 4
)

// marksFor makes the marks for a demand: the slots that are free plus the messages that will be started within half a
// lease if slots go on becoming free as they did.
func marksFor(free int, freed float64, c Config) marks {
	want := free + int(freed)
	high := min(max(want, c.LowWater), c.HighWater)
	low := high / 2
	return marks{
		high:  high,
		low:   low,
		batch: min(max((high-low)/2, 1), maxBatch),
		short: high <= fewSlots,
	}
}

func (m marks) open(waiting int) bool { return m.high > 0 && waiting <= m.low }

func (m marks) close(waiting int) bool { return waiting >= m.high }

// marksLocked returns the marks for the present demand. After messages were let go because no slot became free, none are
// kept waiting until one does: they would be the same ones.
func (b *book) marksLocked(now time.Time) marks {
	c := b.config
	if b.stuck {
		c.LowWater = 0
	}
	return marksFor(len(b.takers), b.freed.read(now), c)
}

// wanted waits until a stream should be opened. It reports false when ctx ended first.
func (b *book) wanted(ctx context.Context) (marks, bool) {
	for {
		b.mu.Lock()
		m := b.marksLocked(time.Now())
		open := m.open(b.line.len()) && b.line.bytes < b.config.MaxBytes
		b.mu.Unlock()
		if open && ctx.Err() == nil {
			return m, true
		}
		select {
		case <-b.demand:
		case <-ctx.Done():
			return marks{}, false
		}
	}
}

// opened notes the open stream, and how to close it.
func (b *book) opened(closeStream context.CancelFunc, m marks) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.Streams++
	b.close, b.asked, b.closing = closeStream, m, false
	b.checkStreamLocked(time.Now())
}

// closed notes the stream's end, and reports whether the book had asked for it.
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

// checkStreamLocked closes the open stream when enough is here, or when it was opened for far less than is wanted now and
// has nothing on its way.
func (b *book) checkStreamLocked(now time.Time) {
	if b.close == nil || b.closing {
		return
	}
	m := b.marksLocked(now)
	full := m.close(b.line.len()) || b.line.bytes >= b.config.MaxBytes
	small := b.line.len() == 0 && m.batch >= outgrown*b.asked.batch
	if full || small {
		b.closing = true
		b.close()
	}
}
