package lease

import "time"

// clock is what this package counts leases by: this process's monotonic clock, and added to it the time for which the
// machine was suspended, since that clock stands still then and the database's leases do not.
type clock struct {
	suspended func() time.Duration
}

func (c clock) now() time.Time { return time.Now().Add(c.suspended()) }

// until returns how long it is from now to a time of this clock, if the machine stays awake.
func (c clock) until(t time.Time) time.Duration { return t.Sub(c.now()) }

// usual returns what time.Now will show at a time of this clock, if the machine stays awake.
func (c clock) usual(t time.Time) time.Time { return t.Add(-c.suspended()) }
