package ledger

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

const second = time.Second

func id(key string) ID { return ID{Key: key, Generation: "g"} }

func grant(t *testing.T, l *Ledger, id ID) Lease {
	t.Helper()
	lease, ok := l.Grant(id)
	require.True(t, ok)
	return lease
}

func TestDeliveryOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{LeaseLength: second})
		now := time.Now()
		l.Learn(id("late"), now.Add(2*second))
		l.Learn(id("old"), now.Add(-2*second))
		l.Learn(id("older"), now.Add(-3*second))
		l.Learn(id("old"), now) // known already

		taker := l.NewTaker()
		require.True(t, taker.Pending())
		require.Equal(t, []ID{id("older")}, taker.Take(1))
		require.Equal(t, []ID{id("old")}, taker.Take(5))
		require.False(t, taker.Pending())
		next, ok := l.Next()
		require.True(t, ok)
		require.Equal(t, now.Add(2*second), next)

		time.Sleep(2*second - time.Nanosecond)
		require.Empty(t, taker.Take(5))
		time.Sleep(time.Nanosecond)
		require.Equal(t, []ID{id("late")}, taker.Take(5))
		_, ok = l.Next()
		require.False(t, ok)
	})
}

func TestLeaseRunsOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{LeaseLength: second})
		l.Learn(id("a"), time.Now())
		taker := l.NewTaker()
		taker.Take(1)
		lease := grant(t, l, id("a"))
		require.Equal(t, time.Now().Add(second), lease.Expires)
		_, again := l.Grant(id("a"))
		require.False(t, again, "it is not offered any more")

		time.Sleep(second - time.Nanosecond)
		require.True(t, l.Live(lease.Token))
		require.False(t, taker.Pending())
		time.Sleep(time.Nanosecond)
		require.False(t, l.Live(lease.Token))
		require.Equal(t, []ID{id("a")}, taker.Take(1))
	})
}

// Leases end exactly, but what they held comes back tick by tick, so that the queue is not read once for each.
func TestReturnsAreGathered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{LeaseLength: second})
		for i := range 20 {
			l.Learn(id(fmt.Sprint(i)), time.Now())
			time.Sleep(time.Millisecond)
			l.NewTaker().Take(1)
			grant(t, l, id(fmt.Sprint(i)))
		}
		next, _ := l.Next()
		time.Sleep(time.Until(next))
		require.Len(t, l.NewTaker().Take(20), 20)
	})
}

func TestRenewRotates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{LeaseLength: second})
		l.Learn(id("a"), time.Now())
		l.NewTaker().Take(1)
		first := grant(t, l, id("a"))

		time.Sleep(second / 2)
		renewed, answer := l.Renew(first.Token)
		require.Equal(t, Renewed, answer)
		require.NotEqual(t, first.Token, renewed.Token)
		require.Equal(t, time.Now().Add(second), renewed.Expires)
		_, answer = l.Renew(first.Token)
		require.Equal(t, Dead, answer, "the old token")
		holder, ok := l.Holder(renewed.Token)
		require.True(t, ok)
		require.Equal(t, id("a"), holder)

		time.Sleep(second - time.Nanosecond)
		require.False(t, l.NewTaker().Pending(), "the first end has passed, the second has not")
		require.True(t, l.Live(renewed.Token))
		time.Sleep(time.Nanosecond)
		_, answer = l.Renew(renewed.Token)
		require.Equal(t, Dead, answer, "a lease that has run out")
		_, answer = l.Renew("no token")
		require.Equal(t, Dead, answer)
	})
}

func TestRenewOfAGoneMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{LeaseLength: second})
		now := time.Now()
		l.Learn(id("acked"), now)
		l.Learn(id("again"), now)
		l.NewTaker().Take(2)
		acked, again := grant(t, l, id("acked")), grant(t, l, id("again"))

		l.Forget(id("acked"))
		l.Learn(ID{Key: "again", Generation: "h"}, now) // the key was inserted again
		for _, token := range []string{acked.Token, again.Token} {
			require.False(t, l.Live(token))
			for range 2 {
				_, answer := l.Renew(token)
				require.Equal(t, Gone, answer)
			}
		}
		require.Equal(t, []ID{{Key: "again", Generation: "h"}}, l.NewTaker().Take(5), "the new message is not leased")

		time.Sleep(second)
		for _, token := range []string{acked.Token, again.Token} {
			_, answer := l.Renew(token)
			require.Equal(t, Dead, answer)
		}
		l.Forget(id("acked"))
		require.Equal(t, 1, l.Len())
	})
}

func TestRedeliveryRests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{LeaseLength: second, Redelivery: []time.Duration{second, 4 * second}})
		l.Learn(id("a"), time.Now())
		taker := l.NewTaker()
		for _, rest := range []time.Duration{second, 4 * second, 4 * second} {
			require.Equal(t, []ID{id("a")}, taker.Take(1))
			lease := grant(t, l, id("a"))
			time.Sleep(second + rest - time.Nanosecond)
			require.False(t, l.Live(lease.Token))
			require.Empty(t, taker.Take(1))
			time.Sleep(time.Nanosecond)
		}
	})
}

func TestReleaseDoesNotCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{LeaseLength: second, Redelivery: []time.Duration{0, time.Hour}})
		l.Learn(id("a"), time.Now())
		taker := l.NewTaker()
		for range 3 {
			require.Equal(t, []ID{id("a")}, taker.Take(1))
			lease := grant(t, l, id("a"))
			l.Release(lease.Token)
			require.False(t, l.Live(lease.Token))
			l.Release(lease.Token)
		}
		require.Zero(t, l.Counts())
		require.Equal(t, []ID{id("a")}, taker.Take(1))
		grant(t, l, id("a"))
		require.Equal(t, Counts{All: 1}, l.Counts())
		time.Sleep(second)
		require.True(t, taker.Pending(), "this was the first delivery")
		for range 2 {
			require.Equal(t, []ID{id("a")}, taker.Take(1))
			lease := grant(t, l, id("a"))
			require.Equal(t, Counts{All: 2, Again: 1}, l.Counts())
			l.Release(lease.Token)
			require.Equal(t, Counts{All: 1}, l.Counts())
		}
	})
}

func TestTakersRefuse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{LeaseLength: second})
		l.Learn(id("a"), time.Now())
		one, two := l.NewTaker(), l.NewTaker()
		require.Equal(t, []ID{id("a")}, one.Take(1))
		require.Empty(t, two.Take(1), "it is offered to one")
		one.Refuse(id("a"))
		require.False(t, one.Pending())
		require.Empty(t, one.Take(1))
		require.Equal(t, []ID{id("a")}, two.Take(1))
		two.PutBack(id("a"))
		require.Empty(t, one.Take(1), "refused for good")
		require.Equal(t, []ID{id("a")}, two.Take(1), "only put back")

		l.Learn(ID{Key: "a", Generation: "h"}, time.Now())
		two.Refuse(id("a")) // gone meanwhile
		require.Equal(t, []ID{{Key: "a", Generation: "h"}}, one.Take(5), "another message")
	})
}

func TestSweep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New(Config{LeaseLength: second})
		l.Learn(id("stays"), time.Now())
		l.Learn(id("gone"), time.Now().Add(time.Hour))
		begun := l.BeginSweep()
		l.Learn(id("new"), time.Now()) // committed after the rows were read
		l.Sweep(begun, func(i ID) bool { return i == id("stays") })
		require.Equal(t, []ID{id("stays"), id("new")}, l.NewTaker().Take(5))
		require.Equal(t, 2, l.Len())
	})
}

// Random use must neither lose nor double a message: at every moment each is in exactly one place.
func TestNothingIsLostOrDoubled(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { wander(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func wander(t *testing.T, rng *rand.Rand) {
	l := New(Config{LeaseLength: second})
	takers := []*Taker{l.NewTaker(), l.NewTaker()}
	offered := map[ID]*Taker{}
	leased := map[ID]Lease{}
	known := map[ID]bool{}
	for step := range 3000 {
		time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
		for i, lease := range leased {
			require.Equal(t, time.Now().Before(lease.Expires), l.Live(lease.Token))
			if !l.Live(lease.Token) {
				delete(leased, i)
			}
		}
		switch rng.IntN(7) {
		case 0, 1:
			i := id(fmt.Sprint(step))
			known[i] = true
			l.Learn(i, time.Now().Add(time.Duration(rng.IntN(100))*time.Millisecond))
		case 2, 3:
			taker := takers[rng.IntN(2)]
			for _, i := range taker.Take(1 + rng.IntN(4)) {
				require.True(t, known[i], "it was deleted")
				require.NotContains(t, offered, i)
				require.NotContains(t, leased, i)
				offered[i] = taker
			}
		case 4:
			for i, taker := range offered {
				delete(offered, i)
				if rng.IntN(3) == 0 {
					taker.PutBack(i)
				} else {
					leased[i] = grant(t, l, i)
				}
				break
			}
		case 5:
			for i, lease := range leased {
				renewed, answer := l.Renew(lease.Token)
				require.Equal(t, Renewed, answer)
				leased[i] = renewed
				break
			}
		case 6:
			for i, lease := range leased {
				delete(leased, i)
				if rng.IntN(4) == 0 {
					l.Release(lease.Token)
				} else {
					delete(known, i)
					l.Forget(i)
				}
				break
			}
		}
		require.Equal(t, len(known), l.Len())
	}
	for i, taker := range offered {
		taker.PutBack(i)
	}
	time.Sleep(2 * second)
	rest := l.NewTaker().Take(1 << 20)
	require.Len(t, rest, len(known))
	for _, i := range rest {
		require.True(t, known[i])
	}
}
