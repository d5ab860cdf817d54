package fault

import (
	"slices"
	"sync"
	"time"
)

// keptRecords bounds what a long run remembers; the counts of a Handle stay exact.
const keptRecords = 10000

// Record is one action that was applied.
type Record struct {
	At     time.Time
	Rule   string // the rule's name
	Action string // for instance "after Internal"
	N      int    // the call was the rule's N-th match, from 1
	// What the call was, as in Call.
	Method, Database, SQL, Tag string
}

type recordLog struct {
	mu   sync.Mutex
	list []Record
}

func (l *recordLog) add(r Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = appendBounded(l.list, r)
}

func (l *recordLog) all() []Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

// appendBounded drops the older half when the list is full, so that the cost of dropping is spread.
func appendBounded(list []Record, r Record) []Record {
	if len(list) >= keptRecords {
		list = append(list[:0], list[keptRecords/2:]...)
	}
	return append(list, r)
}
