package table

import "sync"

// crowd learns how many others are after the same messages. Where claims meet, each claimer reads further ahead and takes
// one block of what it sees, by chance: so they get out of each other's way. A queue with one claimer is served in order.
type crowd struct {
	mu     sync.Mutex
	spread int // blocks to read; 0 means 1
}

const (
	// maxSpread bounds how many blocks are read, maxWindow how many messages.
	maxSpread = 64
	maxWindow = 1000
)

// window returns how many candidates to read for the number that is wanted: whole blocks.
func (c *crowd) window(want int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	blocks := min(max(c.spread, 1), max(maxWindow/want, 1))
	return blocks * want
}

// met takes in a claim: how many messages it tried to take, and how many of them others had taken.
func (c *crowd) met(tried, lost int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case 4*lost > tried:
		c.spread = min(2*max(c.spread, 1), maxSpread)
	case lost == 0:
		c.spread = max(c.spread-1, 1)
	}
}

// block chooses which of the candidates to take: up to want of them, in order. Only those of the first one's priority are
// chosen among, so that a crowd does not make a lower priority go first.
func block(candidates []candidate, want int, random float64) []candidate {
	equal := 0
	for equal < len(candidates) && candidates[equal].priority == candidates[0].priority {
		equal++
	}
	blocks := (equal + want - 1) / want
	from := 0
	if blocks > 1 {
		from = int(random*float64(blocks)) * want
	}
	return candidates[from:min(from+want, len(candidates))]
}
