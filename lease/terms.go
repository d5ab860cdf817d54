package lease

import (
	"math/rand/v2"
	"time"
)

// terms is the arithmetic of one queue's leases. Every time in it is a reading of this process's monotonic clock, and
// every random part comes in from the outside, from 0 up to 1.
type terms struct {
	length time.Duration
	margin time.Duration
}

// bound is until when a lease is certainly ours that was renewed by a call sent at the given time: the database cannot
// have renewed it before the call was sent.
func (t terms) bound(sent time.Time) time.Time { return sent.Add(t.length - t.margin) }

// deadBy is when a lease has certainly ended that was granted or renewed by an answer which arrived at the given time:
// the database cannot have acted after the answer was here.
func (t terms) deadBy(arrived time.Time) time.Time { return arrived.Add(t.length) }

// startUntil is until when a message may be started whose lease came with it and was never renewed. How long the row was
// on its way is not known; half a lease makes it likely that the lease is alive, and the acknowledgement decides.
func (t terms) startUntil(received time.Time) time.Time { return received.Add(t.length / 2) }

// enough is how much of a lease that can no longer be renewed must be left for its message to be started.
func (t terms) enough() time.Duration { return t.length / 4 }

// renewAt plans the next renewal at half the lease, counted from the send time of the last success. A random twentieth of
// the half is taken off, so that workers that started together do not stay together.
func (t terms) renewAt(from time.Time, random float64) time.Time {
	half := t.length / 2
	return from.Add(half - time.Duration(random*float64(half)/20))
}

// together is how much earlier than planned a lease is renewed when a call for another one is due: one call then renews
// all.
func (t terms) together() time.Duration { return t.length / 8 }

// askAgain is how long after a renewal was sent the same token is sent again when no answer came: half of what is left,
// so that tries get closer as the end does, but not before a call has had twice the usual time: asking again of a
// database that is merely slow makes it slower. The first call is not given up: whichever is answered counts.
func (t terms) askAgain(left, usual time.Duration) time.Duration {
	return max(left/2, min(2*usual, left), t.length/20)
}

// retryAfter is the pause after a renewal that failed: growing from a sixty-fourth of the lease to an eighth, the upper
// half of it random.
func (t terms) retryAfter(failures int, random float64) time.Duration {
	d := t.length / 64
	for i := 1; i < failures && d < t.length/8; i++ {
		d *= 2
	}
	d = min(d, t.length/8)
	return d/2 + time.Duration(random*float64(d/2))
}

// deferral returns when the work of a deferral must end and how long after the database's present the message is to come
// due. start is read before the database's time is. Everything that can go wrong with clocks (drift, one part in a
// thousand) and contexts (the margin) is added to the due time, so that the work has what it was given.
func (t terms) deferral(start time.Time, longest time.Duration) (end time.Time, dueIn time.Duration) {
	return start.Add(longest), longest + longest/1000 + t.margin
}

// look is how often the keeper looks at the clock while a holder relies on a bound: its timer stands still while the machine
// is suspended, and would go off too late by as long.
func (t terms) look() time.Duration { return t.length / 8 }

func random() float64 { return rand.Float64() }

// earliest returns the earlier of two times; a zero time means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
