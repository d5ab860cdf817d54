package table

import (
	"fmt"
	"math/big"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/civil"
	"cloud.google.com/go/spanner"
	"github.com/google/uuid"
	"github.com/spanqueue/spanqueue/internal/rowcodec"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

func TestGroupsHoldEveryShardOnce(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{
		1:  "[[0]]",
		2:  "[[0] [1]]",
		5:  "[[0] [1] [2 3] [4]]",
		16: "[[0] [1] [2 3] [4 5 6 7] [8 9 10 11 12 13 14 15]]",
	} {
		shards := make([]int64, n)
		for i := range shards {
			shards[i] = int64(i)
		}
		require.Equal(t, want, fmt.Sprint(groups(shards)))
	}
}

func TestMarksFollowWhatIsLeft(t *testing.T) {
	t.Parallel()
	m := newMarks(2, 1)
	c, other := cell{0, 0}, cell{1, 0}
	local := time.Now()
	require.True(t, m.from(c, local).IsZero(), "nothing is known at first: from the beginning")

	m.seen(c, time.Time{}, at(100), at(200), local, 0)
	require.Equal(t, at(100).Add(-markMargin), m.from(c, local), "the first message that is left, less the margin")
	require.True(t, m.from(other, local).IsZero(), "each cell has its own")

	m.seen(c, at(90), time.Time{}, at(200), local, 0)
	require.Equal(t, at(200).Add(-markMargin), m.from(c, local), "nothing was left up to the time of the answer")
	m.seen(c, at(190), at(500), at(210), local, 0)
	require.Equal(t, at(210).Add(-markMargin), m.from(c, local), "a message that is not visible yet does not push the mark ahead")
	m.seen(c, at(190), at(150), at(150), local, 0)
	require.Equal(t, at(210).Add(-markMargin), m.from(c, local), "an answer that was overtaken does not pull it back")

	m.expect(c, at(300), local)
	require.Equal(t, at(200), m.from(c, local), "a message above it changes nothing")
	m.expect(c, at(50), local)
	m.expect(c, at(60), local)
	require.Equal(t, at(50), m.from(c, local))
	m.seen(c, at(50), time.Time{}, at(220), local, 0)
	require.Equal(t, at(50), m.from(c, local.Add(markMargin-1)), "it is still on its way, though it was not seen")
	require.Equal(t, at(210), m.from(c, local.Add(markMargin)))
	m.expect(c, at(70), local.Add(markMargin))
	require.Equal(t, at(70), m.from(c, local.Add(markMargin)), "what was expected before is over")
	m.expect(cell{7, 7}, at(50), local) // no cell of ours

	require.Equal(t, at(210), m.from(c, local.Add(fullScan-time.Nanosecond)))
	require.True(t, m.from(c, local.Add(fullScan)).IsZero(), "now and then a cell is read from its beginning")
	m.seen(c, time.Time{}, at(20), at(400), local.Add(fullScan), 0.999)
	require.Equal(t, at(20).Add(-markMargin), m.from(c, local.Add(fullScan)), "which may find that the mark was too high")
	require.False(t, m.from(c, local.Add(fullScan+fullScan*3/4)).IsZero())
	require.True(t, m.from(c, local.Add(fullScan+fullScan*3/4+fullScan/100)).IsZero(), "reads from the beginning spread in time")
}

// Whatever was seen in whatever order, no message that was visible when a cell was read lies below its mark.
func TestMarksHideNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newMarks(1, 1)
		c := cell{}
		local := time.Now()
		messages := map[int]bool{} // by second
		now := 1000
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now += rapid.IntRange(0, 20).Draw(t, "passed")
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0: // a message is sent: now, or for later; by a transaction that took its time
				messages[now+rapid.IntRange(-10, 100).Draw(t, "due")] = true
			case 1: // one is acknowledged
				for s := range messages {
					delete(messages, s)
					break
				}
			case 2: // the cell is read
				from, first := m.from(c, local), time.Time{}
				for s := range messages {
					if !at(s).Before(from) && (first.IsZero() || at(s).Before(first)) {
						first = at(s)
					}
				}
				m.seen(c, from, first, at(now), local, 0)
			}
			low := m.from(c, local)
			for s := range messages {
				require.False(t, at(s).Before(low), "a message of second %d lies below the mark %v", s, low)
			}
		}
	})
}

func TestSpansAreStretchesOfTheIndex(t *testing.T) {
	t.Parallel()
	s := span{cell: cell{shard: 3, priority: 2}, until: at(9)}
	require.Equal(t, spanner.KeyRange{Start: spanner.Key{int64(3), int64(2)}, End: spanner.Key{int64(3), int64(2), at(9)}, Kind: spanner.ClosedClosed}, s.keyRange(true))
	s.from = at(4)
	require.Equal(t, spanner.KeyRange{Start: spanner.Key{int64(2), at(4)}, End: spanner.Key{int64(2), at(9)}, Kind: spanner.ClosedClosed}, s.keyRange(false))
}

func TestPauseIsNeverLongerThanItsBound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := pace{bound: time.Duration(rapid.Int64Range(int64(shortestPoll), int64(time.Hour)).Draw(t, "bound"))}
		last := time.Duration(0)
		for range rapid.IntRange(1, 50).Draw(t, "pauses") {
			wait := p.pause(0, false, rapid.Float64Range(0, 0.999999).Draw(t, "random"))
			require.LessOrEqual(t, wait, p.bound)
			require.GreaterOrEqual(t, wait, min(p.bound, shortestPoll)/2)
			require.LessOrEqual(t, wait, max(4*last, shortestPoll), "an idle queue is let go of step by step")
			last = wait
		}
	})
}

func TestPaceAdapts(t *testing.T) {
	t.Parallel()
	p := pace{bound: time.Second}
	var waits []time.Duration
	for range 9 {
		waits = append(waits, p.pause(0, false, 0.999999).Round(time.Millisecond))
	}
	ms := time.Millisecond
	require.Equal(t, []time.Duration{10 * ms, 20 * ms, 40 * ms, 80 * ms, 160 * ms, 320 * ms, 640 * ms, time.Second, time.Second}, waits)
	require.Equal(t, 300*ms, p.pause(300*ms, true, 0.9), "until the next message becomes visible, and no longer")
	require.Equal(t, 950*ms, p.pause(time.Hour, true, 0.9))
	require.Equal(t, shortestWait, p.pause(-time.Second, true, 0.9), "it is visible, or will be in this moment")
	p.found()
	require.Equal(t, shortestPoll/2, p.pause(0, false, 0), "where one came, another may")
}

func TestCrowdSpreadsAndComesBack(t *testing.T) {
	t.Parallel()
	var c crowd
	require.Equal(t, 10, c.window(10), "alone, a claimer takes the first ones")
	for range 3 {
		c.met(10, 9)
	}
	require.Equal(t, 80, c.window(10))
	c.met(10, 2)
	require.Equal(t, 80, c.window(10), "a few lost are no crowd, and no solitude")
	for range 20 {
		c.met(10, 10)
	}
	require.Equal(t, 640, c.window(10))
	require.Equal(t, 1000, c.window(100), "a look reads no more than %d", maxWindow)
	require.Equal(t, 2000, c.window(2000), "but what is wanted")
	for range 100 {
		c.met(10, 0)
	}
	require.Equal(t, 10, c.window(10))
}

func TestBlocksAreOfOnePriority(t *testing.T) {
	t.Parallel()
	var cs []candidate
	for i := range 25 {
		p := int64(0)
		if i >= 14 {
			p = 1
		}
		cs = append(cs, candidate{cell: cell{priority: p}, key: spanner.Key{int64(i)}})
	}
	names := func(cs []candidate) string {
		out := ""
		for _, c := range cs {
			out += fmt.Sprint(c.key[0], " ")
		}
		return out
	}
	require.Equal(t, "0 1 2 3 4 ", names(block(cs, 5, 0)))
	require.Equal(t, "5 6 7 8 9 ", names(block(cs, 5, 0.5)))
	require.Equal(t, "10 11 12 13 14 ", names(block(cs, 5, 0.99)), "the last one of the first priority, and what follows")
	require.Equal(t, names(cs), names(block(cs, 25, 0.9)))
	require.Equal(t, "0 1 ", names(block(cs[:2], 5, 0.9)))
	require.Equal(t, "24 ", names(block(cs[24:], 5, 0.9)))
}

func TestClockKeepsTheTimeBetweenItsBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c clock
		_, ok := c.now()
		require.False(t, ok)
		_, ok = c.past()
		require.False(t, ok)

		// The database's clock is two minutes behind. A commit takes 1 s to get there and 1 s to be answered.
		const offset = -2 * time.Minute
		database := func() time.Time { return time.Now().Add(offset) }
		sent := time.Now()
		time.Sleep(time.Second)
		stamp := database()
		time.Sleep(time.Second)
		c.committed(stamp, sent)
		for range 10 {
			now, _ := c.now()
			past, _ := c.past()
			require.False(t, now.Before(database()))
			require.LessOrEqual(t, now.Sub(database()), time.Second)
			require.False(t, past.After(database()))
			require.LessOrEqual(t, database().Sub(past), time.Second+10*time.Second/drift)
			time.Sleep(time.Second)
		}

		// A read's timestamp may be old; it is a lower bound all the same, and the better one wins.
		c.read(database().Add(-time.Hour))
		past, _ := c.past()
		require.LessOrEqual(t, database().Sub(past), time.Second+20*time.Second/drift)
		c.read(database())
		past, _ = c.past()
		require.Equal(t, database(), past)
		time.Sleep(1000 * time.Second)
		past, _ = c.past()
		require.Equal(t, database().Add(-time.Second), past, "a clock here may run fast")

		// The machine slept: its monotonic clock has missed three hours, which a read shows. The upper bound is not behind.
		c.read(database().Add(3 * time.Hour))
		now, _ := c.now()
		require.False(t, now.Before(database().Add(3*time.Hour)))
	})
}

func TestTokensFindTheirRows(t *testing.T) {
	t.Parallel()
	q := schema.Queue{Name: "Q", Payload: schema.JSON(), KeyColumns: []schema.Column{
		{Name: "I", Type: schema.Int64()}, {Name: "S", Type: schema.String(schema.Max)}, {Name: "B", Type: schema.Bytes(schema.Max)},
		{Name: "T", Type: schema.Timestamp()}, {Name: "D", Type: schema.Date()}, {Name: "N", Type: schema.Numeric()},
		{Name: "O", Type: schema.Bool()}, {Name: "U", Type: schema.UUID()},
	}}
	key, err := rowcodec.NewKey(q)
	require.NoError(t, err)
	tokens, err := newTokens(q, key)
	require.NoError(t, err)
	for _, given := range []spanner.Key{
		{int64(-9223372036854775808), "ключ \x00.", []byte{0, 255}, noon.Add(123456789), civil.Date{Year: 2026, Month: 2, Day: 3},
			*big.NewRat(5, 2), true, uuid.MustParse("5e0f5d0c-0f6d-4a9e-8d5c-0e8b7b2f1a11")},
		{nil, nil, nil, nil, nil, nil, nil, nil},
		{int64(0), "", []byte{}, noon, civil.Date{Year: 1, Month: 1, Day: 1}, *big.NewRat(0, 1), false, uuid.UUID{}},
	} {
		k, err := key.Normalize(given)
		require.NoError(t, err)
		claim := newClaim()
		token, err := tokens.join(claim, k)
		require.NoError(t, err)
		require.Equal(t, claim, claimOf(token))
		gotClaim, gotKey, err := tokens.split(token)
		require.NoError(t, err)
		require.Equal(t, claim, gotClaim)
		require.Equal(t, rowcodec.ID(k), rowcodec.ID(gotKey))
		for i := range k {
			require.Equal(t, rowcodec.IsNull(k[i]), rowcodec.IsNull(gotKey[i]))
		}
	}
	none, err := tokens.join("", spanner.Key{})
	require.NoError(t, err)
	require.Empty(t, none, "what nobody has claimed has no token")
	for _, wrong := range []string{"", "abc", ".abc", "abc.!", "abc.AAAA", "abc."} {
		_, _, err := tokens.split(wrong)
		require.Error(t, err, "%q", wrong)
	}
	require.NotEqual(t, newClaim(), newClaim())
	require.LessOrEqual(t, len(newClaim()), 36, "it fits its column")
}

func TestShardsAreUsedEvenly(t *testing.T) {
	t.Parallel()
	s := plain()
	s.Shards = 16
	q := &Queue{schema: s}
	for _, name := range []string{"order-%d", "%08d", "user/1/%d"} {
		counts := make([]int, s.Shards)
		const n = 16_000
		for i := range n {
			c := q.cellOf(spanner.Key{fmt.Sprintf(name, i)}, 1)
			require.EqualValues(t, 1, c.priority)
			counts[c.shard]++
		}
		for shard, got := range counts {
			require.InDelta(t, n/len(counts), got, 150, "shard %d of keys %s", shard, name)
		}
	}
}
