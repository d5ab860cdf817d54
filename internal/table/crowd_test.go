package table

import (
	"fmt"
	"testing"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"
)

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
