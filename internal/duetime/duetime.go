// Package duetime marks the due times of messages that this module sent again, so that a later receiver can guess that a
// message was delivered before and look up how often.
//
// The mark lives in the digits below the microsecond. A time of the service's own clock, or of most senders, has zeros
// there; a resend puts 1 to 999 random nanoseconds there, which also makes the time unique in practice. The mark is a
// hint: a message sent by somebody with such a time costs one read, and a wrong guess never makes a wrong count.
package duetime

import (
	"math/rand/v2"
	"time"
)

// Mark returns a marked time that is later than t by less than two microseconds: t rounded up to a whole microsecond,
// plus 1 to 999 ns.
func Mark(t time.Time) time.Time {
	up := t.Truncate(time.Microsecond)
	if up.Before(t) {
		up = up.Add(time.Microsecond)
	}
	return up.Add(time.Duration(1 + rand.IntN(999)))
}

// Marked says whether t may be a time that Mark made.
func Marked(t time.Time) bool { return t.Nanosecond()%1000 != 0 }
