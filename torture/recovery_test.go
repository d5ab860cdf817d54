package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// recovering is a recoveries with a worker that was killed with the messages in its hands.
func recovering(messages ...string) *recoveries {
	r := newRecoveries()
	r.killed(time.Now(), "w1", told{inHand: messages})
	return r
}

// see lets the queues show the messages.
func (r *recoveries) see(ids ...string) {
	queued := make(map[string]bool)
	for _, id := range ids {
		queued[id] = true
	}
	r.look(time.Now(), queued, time.Now())
}

func TestRecoveryIsMeasuredFromTheKill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := recovering("T1", "T2", "T3")
		r.see("T1", "T2") // T3 was settled by the killed worker's own commit
		time.Sleep(2 * time.Second)
		r.came("w2", "T1")
		r.came("w2", "T9") // nobody waits for it
		time.Sleep(time.Second)
		r.came("w3", "T2")
		time.Sleep(time.Second)
		r.came("w3", "T1") // once more is not the first time
		r.see("T2")
		time.Sleep(time.Second)
		r.see()
		all := r.of()
		require.Len(t, all, 2)
		median, longest := all.came()
		require.Equal(t, 3*time.Second, median)
		require.Equal(t, 3*time.Second, longest)
		median, longest = all.settled()
		require.Equal(t, 5*time.Second, median)
		require.Equal(t, 5*time.Second, longest)
		require.Equal(t, all, r.of(undisturbed))
		require.Empty(t, r.waits)
	})
}

// A look that has begun before the kill shows nothing about it.
func TestRecoveryIsNotSeenByAnEarlierLook(t *testing.T) {
	t.Parallel()
	r := recovering("T1")
	r.look(time.Now().Add(-time.Second), nil, time.Now())
	require.Len(t, r.waits, 1)
}

func TestRecoveryKnowsWhatElseHappened(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		then func(*recoveries)
		want fate
	}{
		"nothing":                         {func(*recoveries) {}, undisturbed},
		"the next worker was killed":      {func(r *recoveries) { r.came("w2", "T1"); r.killed(time.Now(), "w2", told{}) }, disturbed},
		"with the message in its hands":   {func(r *recoveries) { r.killed(time.Now(), "w2", told{inHand: []string{"T1"}}) }, disturbed},
		"another worker was killed":       {func(r *recoveries) { r.came("w2", "T1"); r.killed(time.Now(), "w3", told{}) }, undisturbed},
		"a worker was frozen":             {func(r *recoveries) { r.trouble()() }, disturbed},
		"the next handler has put it off": {func(r *recoveries) { r.killed(time.Now(), "w2", putOffT1) }, putOff},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := recovering("T1")
			c.then(r)
			r.see("T1")
			r.see()
			require.Len(t, r.of(c.want), 1)
			require.Len(t, r.of(), 1)
		})
	}
}

var putOffT1 = told{inHand: []string{"T1"}, deferred: map[string]bool{"T1": true}}

func TestRecoveryDuringATrouble(t *testing.T) {
	t.Parallel()
	r := newRecoveries()
	over := r.trouble()
	r.killed(time.Now(), "w1", told{inHand: []string{"T1"}})
	over()
	r.killed(time.Now(), "w2", told{inHand: []string{"T2"}})
	r.killed(time.Now(), "w3", told{inHand: []string{"T3"}, deferred: map[string]bool{"T3": true}})
	r.see("T1", "T2", "T3")
	r.see()
	require.Len(t, r.of(disturbed), 1)
	require.Len(t, r.of(undisturbed), 1)
	require.Len(t, r.of(putOff), 1)
	require.Len(t, r.of(undisturbed, putOff), 2)
}
