package processor_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

func ids(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("m%03d", i)
	}
	return all
}

// addAll has the effect for each message, by one read.
func addAll(ctx context.Context, tx *spanner.ReadWriteTransaction, ms []*queue.Message) error {
	for _, m := range ms {
		if err := addOne(ctx, tx, m); err != nil {
			return err
		}
	}
	return nil
}

func single(c *processor.Config) { c.Concurrency = 1 }

func TestBatchIsOneCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := ids(50)
	w.send(all...)
	before := w.db.Front().RPCs()
	var sizes []int
	r := w.handle(w.queue, processor.Batch(func(_ context.Context, tx *spanner.ReadWriteTransaction, ms []*queue.Message) error {
		sizes = append(sizes, len(ms)) // Concurrency is 1
		var writes []*spanner.Mutation
		for _, m := range ms {
			writes = append(writes, spanner.InsertOrUpdate("Effects", []string{"Id", "N"}, []any{m.Key[0], 1}))
		}
		return tx.BufferWrite(writes)
	}), single, func(c *processor.Config) { c.Linger = time.Second })
	r.outcome(processor.Done, 50)
	require.NoError(t, r.stop())
	w.once(all...)
	require.Equal(t, []int{50}, sizes)
	after := w.db.Front().RPCs()
	require.EqualValues(t, 1, after["Commit"]-before["Commit"])
	require.Zero(t, after["ExecuteSql"]-before["ExecuteSql"])
	require.EqualValues(t, 1, r.Figures().Runs)
}

// A poison in a batch of 50: the other 49 are done once, the poison is dead-lettered at its attempt limit.
func TestPoisonInABatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := ids(50)
	w.send(all...)
	const poison = "m023"
	var mu sync.Mutex
	attempts := map[string]int{}
	r := w.handle(w.queue, processor.Batch(func(ctx context.Context, tx *spanner.ReadWriteTransaction, ms []*queue.Message) error {
		for _, m := range ms {
			id := m.Key[0].(string)
			mu.Lock()
			attempts[id] = max(attempts[id], m.Attempt)
			mu.Unlock()
			if id == poison {
				return errors.New("poison")
			}
			if err := addOne(ctx, tx, m); err != nil {
				return err
			}
		}
		return nil
	}), maxAttempts(3), func(c *processor.Config) { c.Linger = 100 * time.Millisecond })
	r.outcome(processor.DeadLettered, 1)
	r.outcome(processor.Done, 49)
	require.NoError(t, r.stop())
	for _, id := range all {
		if id != poison {
			w.once(id)
			require.Equal(t, 1, attempts[id], "a batch that failed for another one's sake is no attempt")
		}
	}
	require.Equal(t, 3, attempts[poison])
	require.Zero(t, w.effects(poison))
	letters := w.letters(poison)
	require.Len(t, letters, 1)
	require.EqualValues(t, 3, letters[0].Attempts)
	require.Zero(t, w.records())
}

// A batch that writes more than a commit may hold is refused, and goes through in parts. Nobody has failed.
func TestBatchBeyondTheLimitOfACommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := ids(8)
	w.send(all...)
	const limit = 4 // a message costs two: the acknowledgement and the effect
	refused := w.fault(fault.Rule{Method: "Commit", Tag: "queue=Q", Match: func(c fault.Call) bool {
		commit, ok := c.Request.(*spannerpb.CommitRequest)
		return ok && len(commit.GetMutations()) > limit
	}, Do: fault.Before(codes.InvalidArgument, "The transaction contains too many mutations.")})
	r := w.handle(w.queue, processor.Batch(addAll), single, maxAttempts(1), func(c *processor.Config) { c.Linger = 500 * time.Millisecond })
	r.outcome(processor.Done, 8)
	require.NoError(t, r.stop())
	require.Positive(t, refused.Applied())
	require.Equal(t, map[processor.Outcome]int64{processor.Done: 8}, r.Figures().Deliveries)
	w.once(all...)
}

// A handler that names the message spares the search.
func TestBatchFatesOfSingleMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := ids(10)
	w.send(all...)
	var runs atomic.Int64
	r := w.handle(w.queue, processor.Batch(func(ctx context.Context, tx *spanner.ReadWriteTransaction, ms []*queue.Message) error {
		runs.Add(1)
		var errs []error
		for _, m := range ms {
			switch m.Key[0] {
			case "m001":
				errs = append(errs, processor.ForMessage(m, processor.Discard(errors.New("useless"))))
			case "m002":
				errs = append(errs, processor.ForMessage(m, processor.DeadLetter(errors.New("hopeless"))))
			case "m003":
				errs = append(errs, fmt.Errorf("wrapped: %w", processor.ForMessage(m, processor.Snooze(time.Hour))))
			case "m004":
				errs = append(errs, processor.ForMessage(m, processor.Retry(errors.New("later"), time.Hour)))
			}
			if err := addOne(ctx, tx, m); err != nil {
				return err
			}
		}
		return errors.Join(errs...)
	}), single, func(c *processor.Config) { c.Linger = 500 * time.Millisecond })
	r.outcome(processor.Done, 6)
	require.NoError(t, r.stop())
	require.Equal(t, map[processor.Outcome]int64{
		processor.Done: 6, processor.Discarded: 1, processor.DeadLettered: 1, processor.Snoozed: 1, processor.Retried: 1,
	}, r.Figures().Deliveries)
	require.EqualValues(t, 2, runs.Load(), "once with all, once without the blamed ones")
	for _, id := range []string{"m000", "m005", "m006", "m007", "m008", "m009"} {
		w.once(id)
	}
	for id, left := range map[string]int{"m001": 0, "m002": 0, "m003": 1, "m004": 1} {
		require.Zero(t, w.effects(id), id)
		require.Equal(t, left, w.left(id), id)
	}
}

// Messages that are gone when the transaction starts are dropped inside it, and the rest goes on.
func TestBatchDropsTheMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := ids(6)
	w.send(all...)
	held := w.fault(fault.Rule{Method: "StreamingRead", Tag: "queue=Q", Nth: 1, Do: fault.Hold()})
	var sizes []int
	r := w.handle(w.queue, processor.Batch(func(ctx context.Context, tx *spanner.ReadWriteTransaction, ms []*queue.Message) error {
		sizes = append(sizes, len(ms))
		return addAll(ctx, tx, ms)
	}), single, func(c *processor.Config) { c.Linger = 500 * time.Millisecond })
	w.applied(held)
	// Meanwhile one is handled elsewhere and one is sent again.
	peeked, err := w.queue.Peek(t.Context(), 6)
	require.NoError(t, err)
	byID := map[any]*queue.Message{}
	for _, m := range peeked {
		byID[m.Key[0]] = m
	}
	later, err := w.queue.ServerTime(t.Context())
	require.NoError(t, err)
	_, err = w.client.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		if err := w.queue.Ack(ctx, tx, byID["m000"]); err != nil {
			return err
		}
		if err := addOne(ctx, tx, byID["m000"]); err != nil {
			return err
		}
		return w.queue.Resend(ctx, tx, byID["m001"], later.Add(time.Second), nil)
	})
	require.NoError(t, err)
	held.Release()
	r.outcome(processor.Duplicate, 2)
	r.outcome(processor.Done, 5)
	require.NoError(t, r.stop())
	require.Equal(t, []int{4, 1}, sizes)
	w.once(all...)
}

// What becomes of a batch when its commit's answer is lost.
func TestBatchCommitIsLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		action fault.Action
		runs   int64
	}{
		"landed, no answer":     {fault.Drop(), 1},
		"landed, internal":      {fault.After(codes.Internal, "broken"), 1},
		"landed, stream reset":  {streamReset(), 1},
		"landed, forgotten":     {fault.Forget(), 1},
		"did not land":          {fault.Before(codes.Unknown, "broken"), 2},
		"did not land, aborted": {fault.Abort(), 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			all := ids(10)
			w.send(all...)
			h := w.fault(fault.Rule{Method: "Commit", Tag: "queue=Q", Nth: 1, Do: c.action})
			var runs atomic.Int64
			r := w.handle(w.queue, processor.Batch(func(ctx context.Context, tx *spanner.ReadWriteTransaction, ms []*queue.Message) error {
				runs.Add(1)
				return addAll(ctx, tx, ms)
			}), single, func(c *processor.Config) { c.Linger = 500 * time.Millisecond })
			w.applied(h)
			wait(t, "the end", func() bool {
				f := r.Figures().Deliveries
				return f[processor.Done]+f[processor.SettledElsewhere] == 10
			})
			require.NoError(t, r.stop())
			w.once(all...)
			require.Equal(t, c.runs, runs.Load())
			require.Len(t, r.Figures().Deliveries, 1)
		})
	}
}
