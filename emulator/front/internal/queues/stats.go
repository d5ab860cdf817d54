package queues

import (
	"context"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/ledger"
)

// Stats tells how many receive queries a queue has now, and what it has delivered since it had its first one. The error
// is NOT_FOUND for a queue that does not exist, or the store's.
func (q *Queues) Stats(ctx context.Context, database, name string) (receivers int, delivered ledger.Counts, err error) {
	d, c, err := q.catalogue(ctx, database)
	if err != nil {
		return 0, ledger.Counts{}, err
	}
	queue := c.find(name)
	if queue == nil {
		return 0, ledger.Counts{}, errNoQueue(name)
	}
	r := d.existing(queue)
	if r == nil {
		return 0, ledger.Counts{}, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.receivers), r.ledger.Counts(), nil
}
