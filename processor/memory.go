package processor

import (
	"sync"

	"github.com/spanqueue/spanqueue/internal/rowcodec"
	"github.com/spanqueue/spanqueue/queue"
)

// memory counts failures where there is no ledger: those of this processor only, for the back-off. When it knows too many
// messages it forgets them all.
type memory struct {
	mu     sync.Mutex
	counts map[string]int
}

// maxRemembered bounds how many messages are remembered.
const maxRemembered = 10_000

func (f *memory) failures(m *queue.Message) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[rowcodec.ID(m.Key)]
}

func (f *memory) count(m *queue.Message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.counts == nil || len(f.counts) >= maxRemembered {
		f.counts = make(map[string]int)
	}
	f.counts[rowcodec.ID(m.Key)]++
}

func (f *memory) forget(m *queue.Message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.counts, rowcodec.ID(m.Key))
}
