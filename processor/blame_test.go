package processor_test

import (
	"context"
	"errors"
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

// What the database does is no failure of the handler's: with one attempt to have, the message is not dead-lettered, and the
// next delivery is its first attempt still.
func TestDatabaseTroublesAreNoFailures(t *testing.T) {
	t.Parallel()
	commit := fault.Rule{Method: "Commit", Tag: "queue=Q", Nth: 1}
	asks := fault.Rule{Method: "StreamingRead", Match: func(c fault.Call) bool {
		read, ok := c.Request.(*spannerpb.ReadRequest)
		return ok && read.GetTable() == "Q" && c.Tag == ""
	}}
	times := func(r fault.Rule, n int, do fault.Action) fault.Rule {
		r.Times, r.Do = n, do
		return r
	}
	for name, c := range map[string]struct {
		faults  []fault.Rule
		outcome processor.Outcome
	}{
		"what became of the commit cannot be learned": {
			// The fate of a handler that has failed would be the second commit, and would succeed.
			[]fault.Rule{times(commit, 1, fault.Before(codes.Unknown, "who knows")), times(asks, 1000, fault.Before(codes.Internal, "broken"))},
			processor.Unresolved,
		},
		"aborted too often": {
			[]fault.Rule{times(commit, 2, fault.Abort())},
			processor.Interrupted,
		},
		"the acknowledgement is not answered": {
			[]fault.Rule{times(fault.Rule{Method: "ExecuteSql", SQL: "DELETE", Tag: "queue=Q", Nth: 1}, 2, fault.Before(codes.Internal, "broken"))},
			processor.Interrupted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var handles []*fault.Handle
			for _, f := range c.faults {
				handles = append(handles, w.fault(f))
			}
			var seen attemptsSeen
			r := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
				seen.add(m)
				return addOne(ctx, tx, m)
			}, maxAttempts(1), func(c *processor.Config) { c.MaxRuns, c.ResolveTimeout = 2, 100*time.Millisecond })
			w.send("m1")
			wait(t, "two deliveries", func() bool {
				f := r.Figures().Deliveries
				return f[processor.Done]+f[c.outcome] == 2 || f[processor.DeadLettered] > 0
			})
			require.NoError(t, r.stop())
			for i, h := range handles {
				require.Positive(t, h.Applied(), "fault %d", i)
				h.Remove()
			}
			require.Equal(t, map[processor.Outcome]int64{c.outcome: 1, processor.Done: 1}, r.Figures().Deliveries)
			require.Empty(t, w.letters("m1"))
			for _, n := range seen.list() {
				require.Equal(t, 1, n)
			}
			w.once("m1")
		})
	}
}

// A handler whose transaction the database has aborted, and that is not done in its time, has failed. It is not run again
// and again for as long as the database aborts.
func TestHandlerThatOutlivesAnAbortFails(t *testing.T) {
	t.Parallel()
	for name, returns := range map[string]func(context.Context) error{
		"swallows the abort": func(context.Context) error { return nil },
		"says that it ended": context.Cause,
		"says anything else": func(context.Context) error { return errors.New("no answer") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.fault(fault.Rule{Method: "StreamingRead", Tag: "queue=Q", Do: fault.Abort()})
			var calls atomic.Int64
			r := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
				calls.Add(1)
				_ = addOne(ctx, tx, m)
				<-ctx.Done()
				return returns(ctx)
			}, maxAttempts(1), func(c *processor.Config) { c.HandlerTimeout = 100 * time.Millisecond })
			w.send("m1")
			wait(t, "the end", func() bool { return w.left("m1") == 0 })
			require.NoError(t, r.stop())
			require.EqualValues(t, 1, calls.Load())
			require.Equal(t, map[processor.Outcome]int64{processor.DeadLettered: 1}, r.Figures().Deliveries)
			require.Zero(t, w.effects("m1"))
		})
	}
}

// A handler that is late and returns nil commits what it has done, if the database lets it.
func TestLateHandlerCommits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		if err := addOne(ctx, tx, m); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}, func(c *processor.Config) { c.HandlerTimeout = 100 * time.Millisecond })
	w.send("m1")
	r.outcome(processor.Done, 1)
	require.NoError(t, r.stop())
	w.once("m1")
}
