package processor_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
)

// The service replaces a due time that is past when the commit arrives by one of its own. The record of a message that is
// sent again names the due time, so a message that is to come again at once must not lose its count by that.
func TestRetryAtOnceKeepsTheCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fault(fault.Rule{Method: "Commit", Tag: "queue=Q", Do: fault.Delay(50 * time.Millisecond)})
	var seen attemptsSeen
	r := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		seen.add(m)
		return processor.Retry(errors.New("not yet"), 0)
	}, maxAttempts(4))
	w.send("m1")
	r.outcome(processor.DeadLettered, 1)
	require.NoError(t, r.stop())
	require.Equal(t, []int{1, 2, 3, 4}, seen.list())
	require.EqualValues(t, 4, w.letters("m1")[0].Attempts)
}

// F11: a delay is time of the database's, whatever this machine's clock says: never early, and late by a round trip only.
func TestF11DelaysGoByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	for name, offset := range map[string]time.Duration{"ahead": time.Minute, "behind": -time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorldBehind(t, front.Options{LeaseLength: leaseLength, ClockOffset: offset})
			const delay = 300 * time.Millisecond
			var asked, again time.Time // in one slot
			r := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
				if asked.IsZero() {
					asked = time.Now()
					return processor.Snooze(delay)
				}
				again = time.Now()
				return addOne(ctx, tx, m)
			}, func(c *processor.Config) { c.Concurrency = 1 })
			w.send("m1")
			r.outcome(processor.Done, 1)
			require.NoError(t, r.stop())
			require.GreaterOrEqual(t, again.Sub(asked), delay)
			require.Less(t, again.Sub(asked), 30*time.Second)
			w.once("m1")
		})
	}
}
