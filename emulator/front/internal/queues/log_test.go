package queues

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLogReader(t *testing.T) {
	t.Parallel()
	var l logReader
	require.Zero(t, l.since(), "nothing is known yet")
	require.False(t, l.overgrown(1<<20), "nor what is much")

	l.done(l.since(), time.Time{}, 5)
	require.True(t, l.read)
	require.Zero(t, l.since(), "a reading in somebody else's turn moves nothing")

	turn := time.Now()
	l.done(l.since(), turn, 5)
	require.Equal(t, turn.Add(-logSlack), l.since())
	l.done(l.since(), time.Time{}, 7)
	require.Equal(t, turn.Add(-logSlack), l.since())
	require.False(t, l.jumped())
	later := turn.Add(time.Second)
	l.done(l.since(), later, 7)
	require.Equal(t, later.Add(-logSlack), l.since())

	require.False(t, l.overgrown(10_010))
	require.True(t, l.overgrown(10_011), "the last whole reading gave 5")

	l.rewind()
	require.Zero(t, l.since())
	require.True(t, l.read, "its rows are known all the same")
}

func TestSetBack(t *testing.T) {
	t.Parallel()
	require.False(t, setBack(time.Second, time.Second))
	require.False(t, setBack(time.Second, time.Hour), "set forward")
	require.False(t, setBack(time.Second, time.Second-logSlack/2))
	require.True(t, setBack(time.Second, time.Second-logSlack))
	require.True(t, setBack(time.Second, -time.Hour))
}
