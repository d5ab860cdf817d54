package lease

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What is decided for an entry at each moment of its life, with a lease of 10 s and a margin of 1 s. Times are seconds.
func TestEntryTimes(t *testing.T) {
	t.Parallel()
	terms := terms{length: 10 * time.Second, margin: time.Second}
	zero := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(s float64) time.Time { return zero.Add(time.Duration(s * float64(time.Second))) }
	fresh := func(place place) *entry {
		return &entry{place: place, token: "t", since: zero, received: zero, renewAt: at(5)}
	}
	renewed := func(place place) *entry {
		e := fresh(place)
		e.renewed, e.answered, e.renewAt = at(5), at(6), at(10)
		return e
	}
	with := func(e *entry, change func(*entry)) *entry { change(e); return e }
	unusable := func(e *entry) { e.token = "" }
	certain := func(e *entry) { e.certain = true }

	for name, c := range map[string]struct {
		entry      *entry
		startUntil float64 // waiting only
		dropAt     float64
		end        float64 // in hand only
		wakeAt     float64 // -1: never
		bound      float64 // -1: not known
	}{
		"waiting, never renewed": {entry: fresh(waiting), startUntil: 5, dropAt: 10, wakeAt: 5, bound: -1},
		"waiting, never renewed, a call under way was refused": {
			entry: with(fresh(waiting), func(e *entry) { e.refused, e.calls = true, 1 }), startUntil: 0, dropAt: 10, wakeAt: 10, bound: -1},
		"waiting, never renewed, nothing to renew with": {entry: with(fresh(waiting), unusable), startUntil: 0, dropAt: 0, wakeAt: 0, bound: -1},
		"waiting, renewed":                 {entry: renewed(waiting), startUntil: 14, dropAt: 14, wakeAt: 10, bound: 14},
		"waiting, renewed, token unusable": {entry: with(renewed(waiting), unusable), startUntil: 11.5, dropAt: 11.5, wakeAt: 11.5, bound: 14},
		"waiting for long":                 {entry: with(renewed(waiting), func(e *entry) { e.since = at(-25) }), startUntil: 14, dropAt: 14, wakeAt: 5, bound: 14},

		"in hand for a transaction, never renewed":            {entry: fresh(inHand), end: 10, wakeAt: 5, bound: -1},
		"in hand for a transaction, renewed":                  {entry: renewed(inHand), end: 16, wakeAt: 10, bound: 14},
		"in hand for a transaction, token unusable":           {entry: with(renewed(inHand), unusable), end: 16, wakeAt: 16, bound: 14},
		"in hand for a call, never renewed":                   {entry: with(fresh(inHand), certain), end: 10, wakeAt: 5, bound: -1},
		"in hand for a call, never renewed, token unusable":   {entry: with(with(fresh(inHand), certain), unusable), end: 0, wakeAt: 0, bound: -1},
		"in hand for a call, renewed":                         {entry: with(renewed(inHand), certain), end: 14, wakeAt: 10, bound: 14},
		"in hand for a call, token unusable: the bound holds": {entry: with(with(renewed(inHand), certain), unusable), end: 14, wakeAt: 14, bound: 14},
		"in hand for a call, stopped":                         {entry: with(renewed(inHand), func(e *entry) { e.certain, e.stopped = true, true }), end: 14, wakeAt: 14, bound: 14},
		"in hand, lost":                                       {entry: with(renewed(inHand), func(e *entry) { e.ended, e.token = errors.New("over"), "" }), end: 16, wakeAt: -1, bound: 14},
		"in hand, deferred":                                   {entry: with(with(renewed(inHand), func(e *entry) { e.deferred = at(100) }), unusable), end: 100, wakeAt: 100, bound: 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := c.entry
			if e.place == waiting {
				require.Equal(t, at(c.startUntil), e.startUntil(terms), "startUntil")
				require.Equal(t, at(c.dropAt), e.dropAt(terms), "dropAt")
			} else {
				require.Equal(t, at(c.end), e.end(terms), "end")
			}
			want := time.Time{}
			if c.wakeAt >= 0 {
				want = at(c.wakeAt)
			}
			require.Equal(t, want, e.wakeAt(terms, 30*time.Second), "wakeAt")
			want = time.Time{}
			if c.bound >= 0 {
				want = at(c.bound)
			}
			require.Equal(t, want, e.bound(terms), "bound")
		})
	}
}
