package lease

import "time"

// maxYoung is how many calls may be under way that were sent a moment ago. Many leases are renewed by several calls; sent
// one after the other they are answered one after the other, sent at once they are all answered at the end. A call that
// takes long does not count: others must not wait for one that may never be answered.
const maxYoung = 4

// traffic is what is known of the renewal calls that are under way. It is owned by the keeper's loop.
type traffic struct {
	terms    terms
	underWay map[*call]time.Time // when it was sent
	usual    time.Duration       // about the longest that calls took lately, those that were answered
}

func (t *traffic) sent(c *call, now time.Time) { t.underWay[c] = now }

func (t *traffic) answered(c *call, ok bool, now time.Time) {
	took := now.Sub(t.underWay[c])
	delete(t.underWay, c)
	if ok {
		t.usual = max(took, t.usual*7/8)
	}
}

// room returns how many calls may be sent now, and when there will be more room though no call is answered; zero when there
// is some. mayConfirm says that a call for first renewals may be sent: there is one at a time, so that those who ask
// meanwhile share the next one, unless it takes long.
func (t *traffic) room(now time.Time) (calls int, more time.Time, mayConfirm bool) {
	calls, mayConfirm = maxYoung, true
	for c, sent := range t.underWay {
		grown := sent.Add(t.terms.together())
		if !now.Before(grown) {
			continue
		}
		more = earliest(more, grown)
		calls--
		if c.first {
			mayConfirm = false
		}
	}
	return max(calls, 0), more, mayConfirm
}
