package processor_test

import (
	"context"
	"fmt"
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

func TestEveryMessageTakesEffectOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 50
	var ids []string
	for i := range n {
		ids = append(ids, fmt.Sprint("m", i))
	}
	r := w.work(addOne)
	w.send(ids...)
	r.outcome(processor.Done, n)
	require.NoError(t, r.stop())
	w.once(ids...)
	require.EqualValues(t, n, r.Figures().Runs, "a transaction each, and no second try")
	require.Zero(t, r.Figures().Aborts)
}

// F01: two owners both finish one message.
func TestF01TwoOwners(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	held := w.fault(fault.Rule{Method: "ExecuteSql", SQL: "DELETE", Tag: "handler=A", Nth: 1, Do: fault.Hold()})
	lost := w.fault(fault.Rule{Method: "ExecuteStreamingSql", SQL: "RENEWLEASE_Q", Do: fault.Before(codes.FailedPrecondition, "no renewals today")})
	var callsA, callsB atomic.Int64
	a := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		callsA.Add(1)
		return addOne(ctx, tx, m)
	}, func(c *processor.Config) { c.Name = "A" })
	w.send("m1")
	w.applied(held)

	b := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		callsB.Add(1)
		return addOne(ctx, tx, m)
	}, func(c *processor.Config) { c.Name = "B" })
	b.outcome(processor.Done, 1)
	held.Release()
	lost.Remove()
	a.outcome(processor.Duplicate, 1)
	require.NoError(t, a.stop())
	require.NoError(t, b.stop())
	require.Zero(t, callsA.Load(), "the ack comes first: a late owner's handler never starts")
	require.EqualValues(t, 1, callsB.Load())
	w.once("m1")
}

// F02 and F03: the commit lands and its answer does not come, or is an error.
func TestF02CommitLandsAndTheAnswerIsLost(t *testing.T) {
	t.Parallel()
	for name, action := range map[string]fault.Action{
		"no answer":        fault.Drop(),
		"answer held":      fault.HoldReply(),
		"deadline":         fault.After(codes.DeadlineExceeded, "too late"),
		"cancelled":        fault.After(codes.Canceled, "cancelled"),
		"unavailable":      fault.After(codes.Unavailable, "try again"),
		"stream reset":     fault.After(codes.Internal, "stream terminated by RST_STREAM with error code: INTERNAL_ERROR"),
		"internal":         fault.After(codes.Internal, "something broke"),
		"unknown":          fault.After(codes.Unknown, "who knows"),
		"server restarted": fault.Forget(),
		"connection cut":   fault.CutReply(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			h := w.fault(fault.Rule{Method: "Commit", Tag: "queue=Q", Nth: 1, Do: action})
			var calls atomic.Int64
			r := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
				calls.Add(1)
				return addOne(ctx, tx, m)
			})
			w.send("m1")
			w.applied(h)
			r.outcome(processor.Done, 1)
			require.NoError(t, r.stop())
			h.Release()
			w.once("m1")
			require.EqualValues(t, 1, calls.Load(), "the handler is not run again for a commit that landed")
			require.NotContains(t, r.logs.String(), "level=ERROR")
		})
	}
}

// Once the lease has ended before the lost commit was looked up, it may have been another holder that settled the message.
// The outcome says so; nothing else is different.
func TestSettledElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fault(fault.Rule{Method: "ExecuteStreamingSql", SQL: "RENEWLEASE_Q", Do: fault.Before(codes.FailedPrecondition, "no renewals today")})
	lost := w.fault(fault.Rule{Method: "Commit", Tag: "queue=Q", Nth: 1, Do: fault.After(codes.Unknown, "who knows")})
	asked := w.fault(fault.Rule{Method: "StreamingRead", Match: func(c fault.Call) bool {
		read, ok := c.Request.(*spannerpb.ReadRequest)
		return ok && read.GetTable() == "Q" && c.Tag == ""
	}, Nth: 1, Do: fault.Delay(2 * leaseLength)})
	r := w.work(addOne)
	w.send("m1")
	w.applied(lost)
	w.applied(asked)
	r.outcome(processor.SettledElsewhere, 1)
	require.NoError(t, r.stop())
	require.Len(t, r.Figures().Deliveries, 1)
	w.once("m1")
}

// F03 (a): the commit is answered with an error and did not land.
func TestF03CommitDoesNotLand(t *testing.T) {
	t.Parallel()
	for _, code := range []codes.Code{codes.DeadlineExceeded, codes.Canceled, codes.Internal, codes.Unknown, codes.Aborted} {
		t.Run(code.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			h := w.fault(fault.Rule{Method: "Commit", Tag: "queue=Q", Nth: 1, Do: fault.Before(code, "outcome unknown")})
			var calls atomic.Int64
			r := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
				calls.Add(1)
				return addOne(ctx, tx, m)
			})
			w.send("m1")
			w.applied(h)
			r.outcome(processor.Done, 1)
			require.NoError(t, r.stop())
			w.once("m1")
			require.EqualValues(t, 2, calls.Load())
			require.Len(t, r.Figures().Deliveries, 1, "no redelivery was needed")
		})
	}
}

// The first commit lands only after the resolver has found the message present and has begun again: nobody waits for it
// any more, and its own client has called it lost.
func TestCommitThatLandsLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.fault(fault.Rule{Method: "Commit", Tag: "queue=Q", Nth: 1, Do: fault.Late()})
	second := w.fault(fault.Rule{Method: "ExecuteSql", SQL: "DELETE", Tag: "queue=Q", Nth: 2, Do: fault.Hold()})
	var calls atomic.Int64
	r := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		calls.Add(1)
		return addOne(ctx, tx, m)
	})
	w.send("m1")
	w.applied(first)
	w.applied(second) // the probe has been answered, and the second run is at its ack
	require.Zero(t, w.effects("m1"))
	require.Equal(t, 1, w.left("m1"))
	first.Release()
	require.Eventually(t, func() bool { return w.effects("m1") == 1 }, patience, time.Millisecond, "the first commit does not land")
	second.Release()
	r.outcome(processor.Done, 1)
	require.NoError(t, r.stop())
	w.once("m1")
	require.EqualValues(t, 1, calls.Load(), "the second run meets no message, and its handler does not start")
}

// F04 (a): the message is gone and the handler would swallow anything.
func TestF04HandlerCannotSwallowAMiss(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	held := w.fault(fault.Rule{Method: "ExecuteSql", SQL: "DELETE", Tag: "queue=Q", Nth: 1, Do: fault.Hold()})
	var calls atomic.Int64
	r := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		defer func() { _ = recover() }()
		calls.Add(1)
		_ = addOne(ctx, tx, m)
		return nil
	})
	w.send("m1")
	w.applied(held)
	n, err := w.queue.Purge(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, n)
	held.Release()
	r.outcome(processor.Duplicate, 1)
	require.NoError(t, r.stop())
	require.Zero(t, calls.Load())
	require.Zero(t, w.effects("m1"))
}

// F04 (b): the handler ignores an error of its own statement. It asked for it: the rest commits.
func TestF04HandlerIgnoresItsOwnError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		_, err := tx.Update(ctx, spanner.NewStatement("INSERT INTO Nowhere (Id) VALUES ('x')"))
		if spanner.ErrCode(err) != codes.InvalidArgument {
			return fmt.Errorf("want InvalidArgument, have %w", err)
		}
		return addOne(ctx, tx, m)
	})
	w.send("m1")
	r.outcome(processor.Done, 1)
	require.NoError(t, r.stop())
	w.once("m1")
}

// The mirror case: the emulator gives an ignored AlreadyExists back at Commit. That is a refusal of what the handler wrote.
func TestF04IgnoredErrorComesBackAtCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.client.Apply(t.Context(), []*spanner.Mutation{spanner.Insert("Effects", []string{"Id", "N"}, []any{"taken", 7})})
	require.NoError(t, err)
	r := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		_, _ = tx.Update(ctx, spanner.NewStatement("INSERT INTO Effects (Id, N) VALUES ('taken', 1)"))
		return addOne(ctx, tx, m)
	}, func(c *processor.Config) { c.MaxAttempts = 1 })
	w.send("m1")
	r.outcome(processor.DeadLettered, 1)
	require.NoError(t, r.stop())
	require.Zero(t, w.effects("m1"))
	require.EqualValues(t, 7, w.effects("taken"))
	require.Zero(t, w.left("m1"))
}

// A commit that is refused for what the handler has written is the handler's failure, at once: running it again would not
// help.
func TestRefusedCommitIsAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	taken := spanner.Insert("Effects", []string{"Id", "N"}, []any{"taken", 7})
	_, err := w.client.Apply(t.Context(), []*spanner.Mutation{taken})
	require.NoError(t, err)
	var calls atomic.Int64
	r := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		calls.Add(1)
		if err := addOne(ctx, tx, m); err != nil {
			return err
		}
		return tx.BufferWrite([]*spanner.Mutation{taken})
	}, maxAttempts(1))
	w.send("m1")
	r.outcome(processor.DeadLettered, 1)
	require.NoError(t, r.stop())
	require.EqualValues(t, 1, calls.Load())
	require.Contains(t, w.letters("m1")[0].Error.StringVal, "AlreadyExists")
	require.Zero(t, w.effects("m1"))
	require.EqualValues(t, 7, w.effects("taken"))
}
