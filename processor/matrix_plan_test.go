package processor_test

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// plan is what a seed decides about a cell.
type plan struct {
	messages    int
	concurrency int
	nth, times  int           // which of the RPCs meet the fault
	lasts       time.Duration // how long a delay, a hold or an absence lasts
}

// plan draws the cell's plan. Seed 0 is the plain case: the first RPC meets the fault, once.
func (c *cell) plan() plan {
	p := plan{messages: max(2, c.site.rows), concurrency: 2, nth: max(c.site.nth, 1), times: 1, lasts: 700 * time.Millisecond}
	if c.site.scene.single {
		p.messages = 1
	}
	if c.seed == 0 {
		return p
	}
	h := fnv.New64a()
	fmt.Fprint(h, c)
	r := rand.New(rand.NewPCG(c.seed, h.Sum64()))
	if !c.site.scene.single {
		p.messages += r.IntN(5)
	}
	p.concurrency = 1 + r.IntN(4)
	p.nth += r.IntN(c.site.more + 1)
	if p.times = 1 + r.IntN(3); c.fault.name == "drop" {
		p.times = 1 // each costs what Google's client waits for, up to 30 s
	}
	p.lasts = time.Duration(100+r.IntN(1100)) * time.Millisecond
	return p
}

// slow ranks the cells by how long they take.
func (c *cell) slow() int {
	switch {
	case c.fault.name == "drop" && c.site.name == "rollback":
		return 2
	case c.fault.name == "drop":
		return 1
	}
	return 0
}
