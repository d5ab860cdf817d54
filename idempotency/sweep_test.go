package idempotency_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/idempotency"
)

func (b *bench) sweep(t *testing.T) idempotency.Swept {
	t.Helper()
	reaper, err := b.store.Reaper(idempotency.ReaperConfig{})
	require.NoError(t, err)
	swept, err := reaper.Sweep(t.Context())
	require.NoError(t, err)
	return swept
}

// F29: a sweep beside a duplicate that begins the operation anew: the sweep has seen
// the expired record, the duplicate replaces it, the sweep must not take the
// new one.
func TestSweepLeavesWhatWasTakenMeanwhile(t *testing.T) {
	t.Parallel()
	b := forTwoHours(t)
	_, err := b.do(t, op, payload("p"))
	require.NoError(t, err)
	b.age(t, op, 3*time.Hour)

	deleting := b.fault(t, fault.Rule{Method: "StreamingRead", Tag: "spanqueue-sweep", Do: fault.Hold()})
	swept := make(chan idempotency.Swept, 1)
	go func() { swept <- b.sweep(t) }()
	require.NoError(t, deleting.Wait(t.Context()))
	receipt, err := b.do(t, op, payload("p"))
	require.NoError(t, err)
	require.False(t, receipt.Replayed)
	deleting.Release()

	require.Zero(t, (<-swept).Deleted)
	receipt, err = b.store.Lookup(t.Context(), op)
	require.NoError(t, err, "the sweep took a record that had not expired")
	require.True(t, receipt.Replayed)
}

// Each record has the retention it was written with. A store whose own is
// shorter must not delete it sooner, and finds it valid.
func TestSweepLeavesWhatIsKeptLonger(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{}) // 48 h
	_, err := b.do(t, op, payload("p"))
	require.NoError(t, err)
	b.age(t, op, 40*time.Hour)
	b.table.Retention = 2 * time.Hour
	b.store = b.newStore(t, idempotency.Config{})
	swept := b.sweep(t)
	require.Zero(t, swept.Deleted)
	require.Zero(t, swept.Lag)
	receipt, err := b.do(t, op, payload("p"))
	require.NoError(t, err)
	require.True(t, receipt.Replayed)
}

func TestSweepWorksInBoundedBatches(t *testing.T) {
	t.Parallel()
	b := forTwoHours(t)
	for i := range 25 {
		o := idempotency.Operation{Scope: "s", Name: "n", Key: fmt.Sprint(i)}
		_, err := b.do(t, o, payload("p"))
		require.NoError(t, err)
		if i < 20 {
			b.age(t, o, 3*time.Hour)
		}
	}
	commits := b.count(t, fault.Rule{Method: "Commit", Tag: "spanqueue-sweep"})
	reaper, err := b.store.Reaper(idempotency.ReaperConfig{Batch: 1})
	require.NoError(t, err)
	swept, err := reaper.Sweep(t.Context())
	require.NoError(t, err)
	require.Equal(t, 20, swept.Deleted)
	require.Equal(t, 20, commits.Matched())
	require.EqualValues(t, 5, swept.Records)
	require.EqualValues(t, 5, b.records(t))
	require.InDelta(t, 1, swept.Lag.Hours(), 0.1)
	require.Zero(t, b.sweep(t).Deleted)
}

// The database aborts a batch of a sweep, or cannot begin it: it is tried again.
func TestSweepRunsAgainWhenAborted(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]fault.Rule{
		"at the read":   {Method: "StreamingRead", Tag: "spanqueue-sweep", Nth: 1, Do: fault.Abort()},
		"at the commit": {Method: "Commit", Tag: "spanqueue-sweep", Nth: 1, Do: fault.Abort()},
		"no begin":      {Method: "StreamingRead", Tag: "spanqueue-sweep", Nth: 1, Do: fault.Before(codes.FailedPrecondition, "not now")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := forTwoHours(t)
			_, err := b.do(t, op, payload("p"))
			require.NoError(t, err)
			b.age(t, op, 3*time.Hour)
			h := b.fault(t, rule)
			require.Equal(t, 1, b.sweep(t).Deleted)
			require.Equal(t, 1, h.Applied())
			require.Zero(t, b.records(t))
		})
	}
}

// Work in progress is reported and kept, however old it is.
func TestSweepReportsUnfinishedOperations(t *testing.T) {
	t.Parallel()
	b := newBench(t, idempotency.Config{})
	const year = 8760 * time.Hour
	now := b.now(t)
	for _, o := range []struct {
		key, state string
		leased     time.Time
	}{
		{"live", "in_progress", now}, {"dead", "in_progress", now.Add(-year)}, {"unsure", "uncertain", now.Add(-year - time.Hour)},
	} {
		b.begun(t, idempotency.Operation{Scope: "s", Name: "n", Key: o.key}, o.state, o.leased)
	}
	for _, batch := range []int{0, 1, 2} {
		reaper, err := b.store.Reaper(idempotency.ReaperConfig{Batch: batch})
		require.NoError(t, err)
		swept, err := reaper.Sweep(t.Context())
		require.NoError(t, err)
		require.Zero(t, swept.Deleted)
		require.EqualValues(t, 3, b.records(t))
		require.Len(t, swept.Unfinished, 2)
		require.Equal(t, "unsure", swept.Unfinished[0].Operation.Key, "the oldest first")
		require.Equal(t, "uncertain", swept.Unfinished[0].State)
		require.Equal(t, "dead", swept.Unfinished[1].Operation.Key)
		require.InDelta(t, year.Hours()+1, swept.InProgress.Hours(), 0.1)
		require.InDelta(t, year.Hours()+1, swept.Oldest.Hours(), 0.1)
	}
}

func TestReaperRunsUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	b := forTwoHours(t)
	var log syncBuffer
	store, err := idempotency.New(b.client, b.table, idempotency.Config{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	require.NoError(t, err)
	_, err = b.do(t, op, payload("p"))
	require.NoError(t, err)
	b.age(t, op, 3*time.Hour)
	reaper, err := store.Reaper(idempotency.ReaperConfig{Every: time.Second})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- reaper.Run(ctx) }()
	require.Eventually(t, func() bool { return b.records(t) == 0 }, time.Minute, 20*time.Millisecond)
	require.Eventually(t, func() bool { return log.contains("deleted=1") }, time.Minute, 20*time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
	require.False(t, log.contains(op.Key), "a key was logged")
}

// syncBuffer is a log that is read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) contains(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Contains(s.b.Bytes(), []byte(text))
}
