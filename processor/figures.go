package processor

import (
	"sync/atomic"

	"github.com/spanqueue/spanqueue/lease"
)

// Figures are counts since the processor was made.
type Figures struct {
	// Deliveries counts the deliveries that have ended, by outcome.
	Deliveries map[Outcome]int64
	// Runs counts the transactions that were begun, for handlers and for fates.
	Runs int64
	// Aborts counts the transactions that were begun again since nothing of them was kept: the database had aborted them,
	// nearly always, or their commits were lost on the way in a manner that Google's client takes for an abort.
	Aborts int64
	// UnknownCommits counts the commits whose outcome was unknown at first.
	UnknownCommits int64
	// Receiver are the receiver's own figures: messages received, waiting and held, leases renewed and lost.
	Receiver lease.Stats
}

// Figures returns the counts. It may be called at any time.
func (p *Processor) Figures() Figures {
	f := Figures{
		Deliveries:     make(map[Outcome]int64),
		Runs:           p.figures.runs.Load(),
		Aborts:         p.figures.aborts.Load(),
		UnknownCommits: p.figures.unknown.Load(),
		Receiver:       p.receiver.Stats(),
	}
	for o := range numOutcomes {
		if n := p.figures.outcomes[o].Load(); n > 0 {
			f.Deliveries[o] = n
		}
	}
	return f
}

type counters struct {
	outcomes              [numOutcomes]atomic.Int64
	runs, aborts, unknown atomic.Int64
}

func (c *counters) delivered(o Outcome) { c.outcomes[o].Add(1) }

func (c *counters) settled(runs, aborts, unknown int) {
	c.runs.Add(int64(runs))
	c.aborts.Add(int64(aborts))
	c.unknown.Add(int64(unknown))
}
