package processor_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// letter is a row of the dead letters.
type letter struct {
	Payload  []byte
	Reason   string
	Error    spanner.NullString
	Attempts int64
	Handler  spanner.NullString
}

func (w *world) letters(id string) []letter {
	w.t.Helper()
	var all []letter
	err := w.client.Single().Query(w.t.Context(), spanner.Statement{
		SQL:    "SELECT Payload, Reason, Error, Attempts, Handler FROM QDeadLetters WHERE Id = @id ORDER BY DeadAt",
		Params: map[string]any{"id": id},
	}).Do(func(r *spanner.Row) error {
		var l letter
		all = append(all, l)
		return r.ToStruct(&all[len(all)-1])
	})
	require.NoError(w.t, err)
	return all
}

// records returns how many attempts records there are.
func (w *world) records() int64 {
	w.t.Helper()
	var n int64
	err := w.client.Single().Query(w.t.Context(), spanner.NewStatement("SELECT COUNT(*) FROM QAttempts")).Do(func(r *spanner.Row) error {
		return r.Columns(&n)
	})
	require.NoError(w.t, err)
	return n
}

func maxAttempts(n int) func(*processor.Config) {
	return func(c *processor.Config) { c.MaxAttempts = n }
}

// Aborts without end are bounded, and the message is left to its lease, without a failure.
func TestAbortsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.fault(fault.Rule{Method: "Commit", Tag: "queue=Q", Do: fault.Abort()})
	r := w.work(addOne, maxAttempts(1), func(c *processor.Config) { c.MaxRuns = 3 })
	w.send("m1")
	r.outcome(processor.Interrupted, 1)
	h.Remove()
	r.outcome(processor.Done, 1)
	require.NoError(t, r.stop())
	w.once("m1")
}

// F16: "again in a while", and what breaks around the commit of it.
func TestF16ResendIsOneCommit(t *testing.T) {
	t.Parallel()
	for name, action := range map[string]fault.Action{
		"nothing breaks":    fault.Delay(0),
		"before the commit": fault.Before(codes.Internal, "broken"),
		"reply lost":        fault.Drop(),
		"reply an error":    fault.After(codes.Unknown, "broken"),
		"stream reset":      streamReset(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			const pause = 300 * time.Millisecond
			// Every first commit of a fate breaks; the handler's own transactions roll back and send none.
			h := w.fault(fault.Rule{Method: "Commit", Tag: "queue=Q", Nth: 1, Do: action})
			var calls atomic.Int64
			var starts []time.Time
			r := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
				starts = append(starts, time.Now()) // Concurrency is 1
				if calls.Add(1) <= 3 {
					return processor.Retry(errors.New("not yet"), pause)
				}
				return addOne(ctx, tx, m)
			}, func(c *processor.Config) { c.Concurrency = 1 })
			w.send("m1")
			wait(t, "three retries and the end", func() bool {
				require.LessOrEqual(t, w.effects("m1"), int64(1))
				f := r.Figures().Deliveries
				return f[processor.Done]+f[processor.SettledElsewhere] == 1
			})
			require.NoError(t, r.stop())
			require.Equal(t, 1, h.Applied())
			w.once("m1")
			require.EqualValues(t, 4, calls.Load())
			require.EqualValues(t, 3, r.Figures().Deliveries[processor.Retried])
			for i := 1; i < len(starts); i++ {
				require.GreaterOrEqual(t, starts[i].Sub(starts[i-1]), pause, "never early")
			}
			require.Zero(t, w.records())
		})
	}
}

func TestFatesKeepNothingOfTheHandler(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		err     error
		outcome processor.Outcome
		left    int
		letters int
	}{
		{"discard", processor.Discard(errors.New("useless")), processor.Discarded, 0, 0},
		{"dead-letter", processor.DeadLetter(errors.New("hopeless")), processor.DeadLettered, 0, 1},
		{"snooze", processor.Snooze(time.Hour), processor.Snoozed, 1, 0},
		{"retry", processor.Retry(errors.New("later"), time.Hour), processor.Retried, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := w.work(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
				if err := addOne(ctx, tx, m); err != nil {
					return err
				}
				return fmt.Errorf("wrapped %w twice", fmt.Errorf("or %w", c.err))
			})
			w.send("m1")
			r.outcome(c.outcome, 1)
			require.NoError(t, r.stop())
			require.Zero(t, w.effects("m1"))
			require.Equal(t, c.left, w.left("m1"))
			letters := w.letters("m1")
			require.Len(t, letters, c.letters)
			if c.letters == 1 {
				require.Contains(t, letters[0].Error.StringVal, "hopeless")
			}
		})
	}
}

// An error that no later attempt makes good is not retried, unless the handler says so.
func TestFinalErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	returns := map[string]error{
		"undecodable": processor.ErrUndecodable,
		"invalid":     queue.ErrInvalid,
		"operation":   idempotency.ErrInvalid,
		"mismatch":    idempotency.ErrMismatch,
		"insists":     processor.Retry(processor.ErrUndecodable, time.Hour),
		"other":       queue.ErrMismatch, // the other message may be gone by then
	}
	var all []string
	for id := range returns {
		all = append(all, id)
	}
	w.send(all...)
	var calls atomic.Int64
	r := w.work(func(_ context.Context, _ *spanner.ReadWriteTransaction, m *queue.Message) error {
		calls.Add(1)
		return fmt.Errorf("read %v: %w", m.Key, returns[m.Key[0].(string)])
	}, func(c *processor.Config) { c.Backoff.Min, c.Backoff.Max = time.Hour, time.Hour })
	r.outcome(processor.DeadLettered, 4)
	r.outcome(processor.Retried, 2)
	require.NoError(t, r.stop())
	require.EqualValues(t, len(returns), calls.Load())
	for id, reason := range map[string]string{"undecodable": "undecodable", "invalid": "handler", "operation": "handler", "mismatch": "handler"} {
		letters := w.letters(id)
		require.Len(t, letters, 1, id)
		require.Equal(t, reason, letters[0].Reason, id)
		require.EqualValues(t, 1, letters[0].Attempts, id)
		require.Contains(t, letters[0].Error.StringVal, returns[id].Error(), id)
	}
}
