package front_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
)

// Many messages, 32 receivers, an Ack mutation for each batch: none is lost, and none comes twice within a lease.
func TestQueueManyMessages(t *testing.T) {
	t.Parallel()
	n, patience := 1000, 2*time.Minute
	if longRun() {
		n, patience = 10_000, 10*time.Minute
	}
	const receivers, lease = 32, 10 * time.Second
	c := emulatortest.Database(t, taskQueue).Client(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	var mu sync.Mutex
	delivered := make(map[int64]time.Time) // when its last lease ends
	again := 0                             // within a lease
	acked := make(map[int64]bool)
	var group errgroup.Group
	for range receivers {
		group.Go(func() error {
			var batch []*spanner.Mutation
			var ids []int64
			err := c.Single().Query(ctx, spanner.NewStatement("SELECT * FROM RECEIVE_Tasks(max_duration => '20m', max_batch_size => 10)")).Do(func(row *spanner.Row) error {
				var m task
				if err := row.ToStruct(&m); err != nil {
					return err
				}
				mu.Lock()
				if ends, seen := delivered[m.ID]; seen && m.Expiration.Before(ends.Add(lease)) {
					again++
				}
				delivered[m.ID] = m.Expiration
				mu.Unlock()
				ids = append(ids, m.ID)
				batch = append(batch, spanner.Ack("Tasks", spanner.Key{m.ID}, spanner.WithIgnoreNotFound(true)))
				if !m.Last {
					return nil
				}
				if _, err := c.Apply(ctx, batch); err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				for _, id := range ids {
					acked[id] = true
				}
				if len(acked) == n {
					cancel()
				}
				batch, ids = nil, nil
				return nil
			})
			if ctx.Err() != nil {
				return nil
			}
			return err
		})
	}
	begin := time.Now()
	for first := 0; first < n; first += 100 {
		var sends []*spanner.Mutation
		for i := range 100 {
			sends = append(sends, spanner.Send("Tasks", spanner.Key{first + i}, "x"))
		}
		apply(t, c, sends...)
	}
	require.NoError(t, group.Wait())
	t.Logf("%d messages to %d receivers in %v", n, receivers, time.Since(begin).Round(time.Millisecond))
	require.Len(t, delivered, n)
	require.Zero(t, again, "came twice within a lease")
	require.Equal(t, []int64{0}, values[int64](t, c, "SELECT COUNT(*) FROM Tasks"))
}
