package processor

import (
	"context"
	"sync"
	"time"

	"github.com/spanqueue/spanqueue/internal/backend"
)

// starts counts starts in the ledger, those that come together in one transaction: while one transaction is under way,
// the next ones gather.
type starts struct {
	ledger  backend.Ledger
	timeout time.Duration
	lead    chan struct{} // one slot: who has it runs the transaction

	mu      sync.Mutex
	waiting []*start
}

type start struct {
	deliveries []backend.Delivery
	done       chan struct{}    // closed when before and err are set
	before     []backend.Record // with an error too, when the starts may have been counted
	err        error
}

// maxStarts is how many deliveries are enough for one transaction.
const maxStarts = 200

func (s *starts) begin(ctx context.Context, ds []backend.Delivery) ([]backend.Record, error) {
	mine := &start{deliveries: ds, done: make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, mine)
	s.mu.Unlock()
	for {
		select {
		case <-mine.done:
			return mine.before, mine.err
		case s.lead <- struct{}{}:
			s.run(ctx, s.take())
			<-s.lead
		}
	}
}

// take removes the starts of the next transaction. It may find none: the leader before has taken the caller's own.
func (s *starts) take() []*start {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, size := 0, 0
	for n < len(s.waiting) && size < maxStarts {
		size += len(s.waiting[n].deliveries)
		n++
	}
	batch := s.waiting[:n:n]
	s.waiting = s.waiting[n:]
	return batch
}

func (s *starts) run(ctx context.Context, batch []*start) {
	if len(batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	var deliveries []backend.Delivery
	for _, b := range batch {
		deliveries = append(deliveries, b.deliveries...)
	}
	before, err := s.ledger.Begin(ctx, deliveries)
	for _, b := range batch {
		b.err = err
		if before != nil {
			b.before, before = before[:len(b.deliveries)], before[len(b.deliveries):]
		}
		close(b.done)
	}
}
