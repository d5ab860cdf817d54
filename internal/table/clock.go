package table

import (
	"sync"
	"time"

	"github.com/spanqueue/spanqueue/internal/backend"
)

// clock holds the database's time between two bounds, so that each use can take the one that errs to the safe side: a
// lease is counted from the upper, what is due is judged by the lower. This machine's wall clock plays no part.
type clock struct {
	upper backend.Clock
	lower floor
}

// committed takes the timestamp of a commit that was sent at sent, a boottime.Now. Spanner chooses it after the commit has
// arrived and answers after it has passed, so it bounds the time on both sides.
func (c *clock) committed(stamp, sent time.Time) {
	c.upper.Observe(stamp, sent)
	c.lower.observe(stamp, time.Now())
}

// read takes the timestamp of a strong read. It is never in the future, but may be older than the read: on a quiet
// database it can be the last commit's.
func (c *clock) read(stamp time.Time) { c.lower.observe(stamp, time.Now()) }

// now returns a time that the database's is not behind of, by a round trip at most ahead of it. It reports false when
// nothing is known from the last minute.
func (c *clock) now() (time.Time, bool) {
	upper, ok := c.upper.Now()
	if lower, some := c.lower.now(); some && lower.After(upper) {
		// The machine slept, or a read has seen a later time: then that is the better bound.
		upper = lower
	}
	return upper, ok
}

// past returns a time that is over for the database. It reports false when nothing is known. It may be long over when the
// database has not been asked for long; that is good enough to judge by, and not to write down: see justPast.
func (c *clock) past() (time.Time, bool) { return c.lower.now() }

// justPast is past where the two bounds are close together: a message that is to be found at once is written down at this
// time, which has to lie above the low-water marks of every receiver.
func (c *clock) justPast() (time.Time, bool) {
	upper, recent := c.upper.Now()
	past, known := c.past()
	return past, recent && known && upper.Sub(past) < markMargin/2
}

// floor carries a lower bound of the database's time forward between its answers.
type floor struct {
	mu       sync.Mutex
	stamp    time.Time
	received time.Time // when the answer with the stamp was here, by the monotonic clock
}

// drift is how much of the time that passed here is left out for a monotonic clock that runs fast, one part in so many.
const drift = 1000

// observe takes a stamp that was in the past when its answer came.
func (f *floor) observe(stamp, received time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.received.IsZero() || f.atLocked(received).Before(stamp) {
		f.stamp, f.received = stamp, received
	}
}

func (f *floor) now() (time.Time, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.received.IsZero() {
		return time.Time{}, false
	}
	return f.atLocked(time.Now()), true
}

func (f *floor) atLocked(at time.Time) time.Time {
	passed := at.Sub(f.received)
	return f.stamp.Add(passed - passed/drift)
}
