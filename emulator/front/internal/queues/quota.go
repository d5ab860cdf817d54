package queues

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// An instance can have 100 queues, and one of less than a node as much less: 20 at 200 processing units.
const (
	maxQueues       = 100
	processingUnits = 1000 // of a node
)

// quota counts the queues of an instance while one of its databases is changed.
type quota struct {
	most   int
	others int // in the other databases
}

func (q *Queues) quota(ctx context.Context, database string) (*quota, error) {
	instance, err := q.store.Instance(ctx, database)
	if err != nil {
		return nil, err
	}
	u := &quota{most: maxQueues}
	if units := instance.ProcessingUnits; units > 0 && units < processingUnits {
		u.most = int(maxQueues * units / processingUnits)
	}
	for _, other := range instance.Databases {
		if other == database {
			continue
		}
		_, c, err := q.catalogue(ctx, other)
		if err != nil {
			return nil, err
		}
		u.others += len(c.queues)
	}
	return u, nil
}

// checkQuota refuses one queue too many. A batch counts the others once.
func (b *batch) checkQuota(ctx context.Context, queue string) (err error) {
	if b.quota == nil {
		if b.quota, err = b.queues.quota(ctx, b.database); err != nil {
			return err
		}
	}
	if b.quota.others+len(b.all()) >= b.quota.most {
		return status.Errorf(codes.FailedPrecondition, "Cannot create queue %s: the instance has %d queues, and can have no more.", queue, b.quota.most)
	}
	return nil
}
