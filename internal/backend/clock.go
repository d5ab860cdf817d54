package backend

import (
	"sync"
	"time"

	"github.com/spanqueue/spanqueue/internal/boottime"
)

// maxStampAge bounds how long a stamp is carried forward by local time: a minute of two clocks drifting apart by 200 ppm
// is 12 ms.
const maxStampAge = time.Minute

// Clock carries the database's time forward between its answers. Its zero value knows nothing. It never runs behind the
// database: the time since the request was *sent* is added to the answer's stamp, so the way of the answer counts twice
// at most. This machine's wall clock plays no part; only monotonic differences do, those of package boottime, so that a
// suspension of the machine does not put it behind.
type Clock struct {
	mu    sync.Mutex
	stamp time.Time
	sent  time.Time
}

// Observe takes a stamp that the database made when it answered a request sent at sent (a boottime.Now of this process).
func (c *Clock) Observe(stamp, sent time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sent.After(c.sent) {
		c.stamp, c.sent = stamp, sent
	}
}

// Now returns the database's time. It reports false when the last stamp is older than a minute, or there is none.
func (c *Clock) Now() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sent.IsZero() {
		return time.Time{}, false
	}
	passed := boottime.Now().Sub(c.sent)
	if passed > maxStampAge {
		return time.Time{}, false
	}
	return c.stamp.Add(passed), true
}
