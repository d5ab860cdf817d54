package lease

import "time"

// lag tells how far the rows of one stream are behind: how much longer the latest was on its way than the quickest one.
// It compares differences only, of the database's stamps with each other and of our readings with each other, so the two
// clocks need not agree. What it says can be too little, never too much, unless the database's clock steps; then it is
// wrong until the next stream.
type lag struct {
	arrived time.Time // of the quickest row so far; zero: none yet
	granted time.Time // its lease's end, as stamped
}

// of returns the lag of a row, from 0 to most.
func (l *lag) of(arrived, leaseEnd time.Time, most time.Duration) time.Duration {
	if leaseEnd.IsZero() {
		return 0
	}
	behind := arrived.Sub(l.arrived) - leaseEnd.Sub(l.granted)
	if l.arrived.IsZero() || behind < 0 {
		l.arrived, l.granted = arrived, leaseEnd
		return 0
	}
	return min(behind, most)
}
