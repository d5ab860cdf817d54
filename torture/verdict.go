package main

import (
	"fmt"
	"time"

	"github.com/spanqueue/spanqueue/processor"
)

// findings are what stands in the database in the end, and what is known beside it.
type findings struct {
	sent    map[string]bool  // by id: what the producers know to have sent
	noted   []string         // ids that the producers' transactions have written down
	effects map[string]int64 // by id: how often it took effect
	left    []string         // ids in the queues
	dead    []string         // ids among the dead letters
}

// verdict is what is wrong.
type verdict struct {
	lost  int      // messages that never took effect
	twice int      // effects beyond a message's first
	wrong []string // everything else, a line each
}

func (v verdict) good() bool { return v.lost == 0 && v.twice == 0 && len(v.wrong) == 0 }

func (v *verdict) add(format string, args ...any) {
	v.wrong = append(v.wrong, fmt.Sprintf(format, args...))
}

// judge compares what happened with what was sent.
func judge(f findings) verdict {
	var v verdict
	for id := range f.sent {
		switch n := f.effects[id]; {
		case n == 0:
			v.lost++
		case n > 1:
			v.twice += int(n - 1)
		}
	}
	for id := range f.effects {
		if !f.sent[id] {
			v.add("%s has taken effect and was not sent", id)
		}
	}
	if len(f.noted) != len(f.sent) {
		v.add("the producers have sent %d messages and know of %d", len(f.noted), len(f.sent))
	}
	for _, id := range f.noted {
		if !f.sent[id] {
			v.add("%s was sent and its producer does not know", id)
		}
	}
	if len(f.left) > 0 {
		v.add("%d messages are still in the queues, %v after the last was sent: %.100v", len(f.left), drainLimit, f.left)
	}
	if len(f.dead) > 0 {
		v.add("%d messages were given up, and none deserved it: %.100v", len(f.dead), f.dead)
	}
	return v
}

// enough is the length of a run from which on everything must have happened that is meant to.
const enough = 30 * time.Second

// judgeRun says what else is wrong with a run, and what one of that length has not shown.
func (v *verdict) judgeRun(length time.Duration, backlog int, c *chaos, f *faults, met figures) {
	if backlog > allowedBacklog {
		v.add("there were %d messages in the queues, %d are allowed", backlog, allowedBacklog)
	}
	if blamed := met.Outcomes[processor.Retried.String()]; blamed > met.OwnFailures {
		v.add("handlers were blamed for %d failures, and %d were their own", blamed, met.OwnFailures)
	}
	if length < enough {
		return
	}
	for _, one := range []struct {
		what string
		n    int64
	}{
		{"kills of workers that were at work", c.kills.Load()},
		{"kills of workers with a commit under way", c.inCommit.Load()},
		{"frozen workers", c.freezes.Load()},
		{"pauses of the emulator", c.pauses.Load()},
		{"transactions that the database aborted", met.Aborts},
		{"commits of unknown outcome", met.Unknown},
	} {
		if one.n == 0 {
			v.add("there were no %s: this run has proved nothing about them", one.what)
		}
	}
	for _, name := range f.missing() {
		v.add("the fault %q was never applied: this run has proved nothing about it", name)
	}
}
