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

// marks say when a stream is opened, how long it is read and what it asks for. A stream brings as many messages as are
// due, whatever it asks for. When enough wait here it is not read for a while, and only when that does not pass is it
// closed: what was on its way then waits out its lease.
type marks struct {
	high  int // the stream is not read while so many wait
	low   int // it is opened when no more than these wait
	batch int
	short bool
}

const (
	fewSlots = 4
	maxBatch = 100
	// gather is how long the first demand waits for more of it before a stream is opened: workers come one by one.
	gather = 2 * time.Millisecond
)

// marksFor makes the marks for a demand: the slots that are free plus the messages that will be started within half a
// lease if slots go on becoming free as they did.
func marksFor(free int, freed float64, c Config) marks {
	want := free + int(freed)
	high := min(max(want, c.LowWater), c.HighWater)
	m := marks{high: high, low: high / 2, batch: maxBatch, short: high <= fewSlots}
	if m.short {
		m.batch = max(high, 1)
	}
	return m
}

func (m marks) open(waiting int) bool { return m.high > 0 && waiting <= m.low }

func (m marks) full(waiting int) bool { return waiting >= m.high }

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
	waited := false
	for {
		b.mu.Lock()
		m := b.marksLocked(time.Now())
		open := m.open(b.line.len()) && b.line.bytes < b.config.MaxBytes
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
	b.close, b.closing, b.fullSince = closeStream, false, time.Time{}
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

// room waits, while the stream is not read, until there is room for more. It returns when the stream is closed for lack
// of it, too.
func (b *book) room(ctx context.Context) {
	for {
		b.mu.Lock()
		left := b.checkStreamLocked(time.Now())
		b.mu.Unlock()
		if left <= 0 || ctx.Err() != nil {
			return
		}
		timer := time.NewTimer(left)
		select {
		case <-b.demand:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// checkStreamLocked closes the open stream when enough has been here for a quarter of a lease: longer, and what is on its
// way would be too old to be started when it is read. It returns how much of that time is left, or 0 when there is room,
// or no stream.
func (b *book) checkStreamLocked(now time.Time) time.Duration {
	if b.close == nil || b.closing {
		return 0
	}
	if !b.marksLocked(now).full(b.line.len()) && b.line.bytes < b.config.MaxBytes {
		b.fullSince = time.Time{}
		return 0
	}
	if b.fullSince.IsZero() {
		b.fullSince = now
	}
	if left := b.fullSince.Add(b.terms.enough()).Sub(now); left > 0 {
		return left
	}
	b.closing = true
	b.close()
	return 0
}
