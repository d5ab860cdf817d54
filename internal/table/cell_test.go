package table

import (
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
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
