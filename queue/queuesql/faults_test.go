package queuesql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuesql"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// counting adds one for each message and counts its calls.
func counting(calls *atomic.Int64) queuesql.HandlerFunc {
	return func(ctx context.Context, tx *sql.Tx, m *queue.Message) error {
		calls.Add(1)
		return addOne(ctx, tx, m)
	}
}

func TestEveryMessageTakesEffectOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := numbered("m", 50)
	r := w.work(addOne)
	w.send(ids...)
	r.outcome(processor.Done, int64(len(ids)))
	r.stop()
	w.once(ids...)
	require.EqualValues(t, len(ids), r.Figures().Runs, "a transaction each, and no second try")
	require.Zero(t, r.Figures().Aborts)
}

// F01: two owners both finish one message.
func TestF01TwoOwners(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	held := w.fault(fault.Rule{Method: "ExecuteStreamingSql", SQL: "DELETE", Tag: "handler=A", Nth: 1, Do: fault.Hold()})
	lost := w.fault(fault.Rule{Method: "ExecuteStreamingSql", SQL: "RENEWLEASE_Q", Do: fault.Before(codes.FailedPrecondition, "no renewals today")})
	var callsA, callsB atomic.Int64
	a := w.work(counting(&callsA), func(c *processor.Config) { c.Name = "A" })
	w.send("m1")
	w.applied(held)

	b := w.work(counting(&callsB), func(c *processor.Config) { c.Name = "B" })
	b.outcome(processor.Done, 1)
	held.Release()
	lost.Remove()
	a.outcome(processor.Duplicate, 1)
	a.stop()
	b.stop()
	require.Zero(t, callsA.Load(), "the ack comes first: a late owner's handler never starts")
	require.EqualValues(t, 1, callsB.Load())
	w.once("m1")
}

// F02 and F03: the commit lands and its answer does not come, or is an error.
func TestF02CommitLandsAndTheAnswerIsLost(t *testing.T) {
	t.Parallel()
	for name, action := range map[string]fault.Action{
		"no answer":        fault.Drop(),
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
			r := w.work(counting(&calls))
			w.send("m1")
			w.applied(h)
			r.outcome(processor.Done, 1)
			r.stop()
			w.once("m1")
			require.EqualValues(t, 1, calls.Load(), "the handler is not run again for a commit that landed")
			require.NotContains(t, r.logs.String(), "level=ERROR")
		})
	}
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
			r := w.work(counting(&calls))
			w.send("m1")
			w.applied(h)
			r.outcome(processor.Done, 1)
			r.stop()
			w.once("m1")
			require.EqualValues(t, 2, calls.Load())
			require.Len(t, r.Figures().Deliveries, 1, "no redelivery was needed")
		})
	}
}

// F16: a message that is postponed is there once at any time, whatever becomes of the commit that postpones it.
func TestF16Postponed(t *testing.T) {
	t.Parallel()
	for name, action := range map[string]fault.Action{
		"no fault":      {},
		"does not land": fault.Before(codes.Internal, "outcome unknown"),
		"aborted":       fault.Abort(),
		"answer lost":   fault.Drop(),
		"stream reset":  fault.After(codes.Internal, "stream terminated by RST_STREAM with error code: INTERNAL_ERROR"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var h *fault.Handle
			if action != (fault.Action{}) {
				h = w.fault(fault.Rule{Method: "Commit", Tag: "queue=Q", Nth: 1, Do: action})
			}
			var calls, attempt atomic.Int64
			r := w.work(func(ctx context.Context, tx *sql.Tx, m *queue.Message) error {
				n := calls.Add(1)
				if err := addOne(ctx, tx, m); err != nil {
					return err
				}
				switch {
				case n == 1:
					return processor.Snooze(300 * time.Millisecond)
				case n <= 3:
					return fmt.Errorf("attempt %d: %w", m.Attempt, errors.New("not yet"))
				}
				attempt.Store(int64(m.Attempt))
				return nil
			}, func(c *processor.Config) { c.MaxAttempts = 3 })
			w.send("m1")
			if h != nil {
				w.applied(h)
			}
			r.outcome(processor.Snoozed, 1)
			r.outcome(processor.Retried, 2)
			r.outcome(processor.Done, 1)
			r.stop()
			w.once("m1")
			require.EqualValues(t, 4, calls.Load())
			require.EqualValues(t, 3, attempt.Load(), "a snooze is no attempt")
			require.Zero(t, w.count("SELECT COUNT(*) FROM "+schema.Attempts{Queue: testQueue}.TableName()+" WHERE Id = @id", "m1"), "the record goes with the message")
		})
	}
}

// A message that fails too often goes to the dead letters, and nothing that its handler wrote stays.
func TestDeadLetter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.work(func(ctx context.Context, tx *sql.Tx, m *queue.Message) error {
		if err := addOne(ctx, tx, m); err != nil {
			return err
		}
		return errors.New("never")
	}, func(c *processor.Config) { c.MaxAttempts = 2 })
	w.send("m1")
	r.outcome(processor.Retried, 1)
	r.outcome(processor.DeadLettered, 1)
	r.stop()
	require.Zero(t, w.effects("m1"))
	require.Zero(t, w.left("m1"))
	require.EqualValues(t, 1, w.count("SELECT COUNT(*) FROM "+schema.DeadLetters{Queue: testQueue}.TableName()+" WHERE Id = @id", "m1"))
}

// F19: an abort that the handler hides, and one that it makes up.
func TestF19Aborts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		wraps func(error) error
	}{
		{"wrapped", func(err error) error { return fmt.Errorf("read: %w", err) }},
		{"flattened to text", func(err error) error { return errors.New(err.Error()) }},
		{"forgotten", func(error) error { return nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.fault(fault.Rule{Method: "ExecuteStreamingSql", SQL: "SELECT N", Tag: "queue=Q", Nth: 1, Do: fault.Abort()})
			var calls atomic.Int64
			r := w.work(func(ctx context.Context, tx *sql.Tx, m *queue.Message) error {
				calls.Add(1)
				if err := addOne(ctx, tx, m); err != nil {
					return c.wraps(err)
				}
				return nil
			})
			w.send("m1")
			r.outcome(processor.Done, 1)
			r.stop()
			w.once("m1")
			require.EqualValues(t, 2, calls.Load())
			require.EqualValues(t, 1, r.Figures().Aborts)
			require.Len(t, r.Figures().Deliveries, 1)
		})
	}
	t.Run("made up", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		var calls atomic.Int64
		r := w.work(func(ctx context.Context, tx *sql.Tx, m *queue.Message) error {
			calls.Add(1)
			_ = addOne(ctx, tx, m)
			return status.Error(codes.Aborted, "I say so")
		}, func(c *processor.Config) { c.Backoff.Min, c.Backoff.Max = time.Hour, time.Hour })
		w.send("m1")
		r.outcome(processor.Retried, 1)
		r.stop()
		require.EqualValues(t, 1, calls.Load())
		require.Zero(t, w.effects("m1"))
	})
	t.Run("at commit", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		first := w.fault(fault.Rule{Method: "Commit", Tag: "queue=Q", Nth: 1, Do: fault.Abort()})
		second := w.fault(fault.Rule{Method: "Commit", Tag: "queue=Q", Nth: 1, Do: fault.Abort()})
		var calls atomic.Int64
		r := w.work(counting(&calls))
		w.send("m1")
		w.applied(first)
		w.applied(second)
		r.outcome(processor.Done, 1)
		r.stop()
		w.once("m1")
		require.EqualValues(t, 3, calls.Load(), "the function is run again, not the driver's record of its statements")
	})
}
