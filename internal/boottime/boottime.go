// Package boottime is a clock that goes on while the machine is suspended.
//
// What Go measures elapsed time by, the monotonic clock, stands still on Linux while the machine sleeps, and a bound that is
// counted by it is then found too late. A lease in a database goes on meanwhile. So bounds are counted by Now.
//
// On Linux the kernel tells how long the machine was suspended. Elsewhere nothing is known of it, and Now is time.Now.
// Nor is it known anywhere for how long a hypervisor has halted the whole machine.
package boottime

import (
	"sync/atomic"
	"time"
)

// Now returns the present by a clock that goes on while the machine is suspended. Readings are compared with each other
// and with nothing else; their wall clock means nothing.
func Now() time.Time { return time.Now().Add(Suspended()) }

// Suspended returns for how long the machine has been suspended since this program started. It never goes back.
func Suspended() time.Duration { return meter.read(suspended) }

// meter is of the whole process: so Now never goes back, whoever asks.
var meter = newGauge(suspended)

// gauge remembers the highest reading.
type gauge struct {
	first   int64
	highest atomic.Int64
}

// least is the shortest suspension that counts. Two clocks are not read at the same moment.
const least = 10 * time.Millisecond

func newGauge(read func() time.Duration) *gauge {
	g := &gauge{}
	for range 3 {
		g.first = max(g.first, int64(read()))
	}
	g.highest.Store(g.first)
	return g
}

// read reads, and returns what has come since the first reading. A reading may be too low, when the process was held up in
// it, and is never too high; so the highest one is the best.
func (g *gauge) read(read func() time.Duration) time.Duration {
	now := int64(read())
	for {
		highest := g.highest.Load()
		if now < highest+int64(least) {
			return time.Duration(highest - g.first)
		}
		if g.highest.CompareAndSwap(highest, now) {
			return time.Duration(now - g.first)
		}
	}
}
