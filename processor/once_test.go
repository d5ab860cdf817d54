package processor_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// onceWorld is a world with operations. A message's payload is its operation's key and what is asked for.
func onceWorld(t *testing.T) (*world, *idempotency.Store) {
	t.Helper()
	w := newWorld(t, schema.Operations{}.Statements()...)
	store, err := idempotency.New(w.client, schema.Operations{}, idempotency.Config{})
	require.NoError(t, err)
	return w, store
}

func operationOf(m *queue.Message) (idempotency.Operation, idempotency.Fingerprint, error) {
	var key, asked string
	if _, err := fmt.Sscan(string(m.Payload), &key, &asked); err != nil {
		return idempotency.Operation{}, idempotency.Fingerprint{}, err
	}
	return idempotency.Operation{Scope: "tests", Name: "grant", Key: key}, idempotency.FingerprintBytes([]byte(asked)), nil
}

// grant adds 1 to the effects of the operation.
func grant(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) (idempotency.Result, error) {
	op, _, err := operationOf(m)
	if err != nil {
		return idempotency.Result{}, err
	}
	return idempotency.Result{Body: m.Payload}, effect(ctx, tx, op.Key)
}

func (w *world) sendPayload(payload string, ids ...string) {
	w.t.Helper()
	var out []queue.Outgoing
	for _, id := range ids {
		out = append(out, queue.Outgoing{Key: spanner.Key{id}, Payload: []byte(payload)})
	}
	require.NoError(w.t, w.queue.Send(w.t.Context(), out))
}

// F23: two copies, and then twenty, ask for one operation at the same time.
func TestF23CopiesOfOneOperation(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 20} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			w, store := onceWorld(t)
			w.sendPayload("k five", ids(n)...)
			var calls atomic.Int64
			h := processor.Once{Store: store, Operation: operationOf, Effect: func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) (idempotency.Result, error) {
				calls.Add(1)
				return grant(ctx, tx, m)
			}}
			a, b := w.handle(w.queue, h), w.handle(w.openQueue(w.db.Client(t)), h)
			ended := func(o processor.Outcome) int64 { return a.Figures().Deliveries[o] + b.Figures().Deliveries[o] }
			wait(t, "the end", func() bool { return ended(processor.Done)+ended(processor.Duplicate) >= int64(n) })
			require.NoError(t, a.stop())
			require.NoError(t, b.stop())
			require.EqualValues(t, 1, ended(processor.Done))
			require.EqualValues(t, n-1, ended(processor.Duplicate))
			require.EqualValues(t, 1, w.effects("k"))
			for _, id := range ids(n) {
				require.Zero(t, w.left(id))
				require.Empty(t, w.letters(id))
			}
			receipt, err := store.Lookup(t.Context(), idempotency.Operation{Scope: "tests", Name: "grant", Key: "k"})
			require.NoError(t, err)
			require.Equal(t, "k five", string(receipt.Body))
		})
	}
}

// The same message sent again after it was acknowledged is the same operation; with another payload it is a mismatch.
func TestOnceAcrossMessages(t *testing.T) {
	t.Parallel()
	w, store := onceWorld(t)
	r := w.handle(w.queue, processor.Once{Store: store, Operation: operationOf, Effect: grant,
		Replayed: func(ctx context.Context, tx *spanner.ReadWriteTransaction, _ *queue.Message, receipt idempotency.Receipt) error {
			return effect(ctx, tx, "answered "+string(receipt.Body))
		}})
	w.sendPayload("k five", "m1")
	r.outcome(processor.Done, 1)
	w.sendPayload("k five", "m1")
	r.outcome(processor.Duplicate, 1)
	require.EqualValues(t, 1, w.effects("answered k five"), "the duplicate was answered, in its own commit")
	w.sendPayload("k six", "m2")
	r.outcome(processor.DeadLettered, 1)
	w.sendPayload("nonsense", "m3")
	r.outcome(processor.DeadLettered, 2)
	require.NoError(t, r.stop())
	require.Zero(t, r.Figures().Deliveries[processor.Retried], "trying again does not make another request of it")
	require.EqualValues(t, 1, w.effects("k"))
	require.Contains(t, w.letters("m2")[0].Error.StringVal, "another request")
	require.Len(t, w.letters("m3"), 1)
}

// A refusal is kept, alone, and is what a second message finds.
func TestOnceRefusal(t *testing.T) {
	t.Parallel()
	w, store := onceWorld(t)
	var calls atomic.Int64
	r := w.handle(w.queue, processor.Once{Store: store, Operation: operationOf, Effect: func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) (idempotency.Result, error) {
		calls.Add(1)
		if err := effect(ctx, tx, "k"); err != nil {
			return idempotency.Result{}, err
		}
		return idempotency.Result{}, idempotency.Refuse(idempotency.Result{Code: 402})
	}})
	w.sendPayload("k five", "m1")
	r.outcome(processor.Done, 1)
	w.sendPayload("k five", "m2")
	r.outcome(processor.Duplicate, 1)
	require.NoError(t, r.stop())
	require.EqualValues(t, 1, calls.Load())
	require.Zero(t, w.effects("k"))
	receipt, err := store.Lookup(t.Context(), idempotency.Operation{Scope: "tests", Name: "grant", Key: "k"})
	require.NoError(t, err)
	require.True(t, receipt.Refused)
	require.EqualValues(t, 402, receipt.Code)
}

// While the operation is in progress elsewhere the message waits, and no attempt is used.
func TestOnceInProgress(t *testing.T) {
	t.Parallel()
	w, store := onceWorld(t)
	op := idempotency.Operation{Scope: "tests", Name: "grant", Key: "k"}
	started, finish := make(chan struct{}), make(chan struct{})
	steps := make(chan error, 1)
	go func() {
		_, err := store.Steps(t.Context(), op, idempotency.FingerprintBytes([]byte("five")), func(ctx context.Context, run *idempotency.Run) error {
			if _, err := idempotency.Local(ctx, run, "first", func(ctx context.Context, tx *spanner.ReadWriteTransaction) (int, error) {
				return 1, effect(ctx, tx, "k")
			}); err != nil {
				return err
			}
			close(started)
			<-finish
			return run.Complete(ctx, func(context.Context, *spanner.ReadWriteTransaction) (idempotency.Result, error) {
				return idempotency.Result{}, nil
			})
		})
		steps <- err
	}()
	<-started
	r := w.handle(w.queue, processor.Once{Store: store, Operation: operationOf, Effect: func(context.Context, *spanner.ReadWriteTransaction, *queue.Message) (idempotency.Result, error) {
		return idempotency.Result{}, errors.New("must not run")
	}}, maxAttempts(1))
	w.sendPayload("k five", "m1")
	r.outcome(processor.Snoozed, 1)
	close(finish)
	require.NoError(t, <-steps)
	require.NoError(t, r.stop())
	require.Equal(t, 1, w.left("m1"))
	require.Empty(t, w.letters("m1"))
	require.EqualValues(t, 1, w.effects("k"))
}

// F03 (c): our own receipt, whose commit's answer was lost, means "done before".
func TestF03OwnReceipt(t *testing.T) {
	t.Parallel()
	for name, action := range map[string]fault.Action{
		"landed":       fault.After(codes.Unknown, "outcome unknown"),
		"landed, drop": fault.Drop(),
		"stream reset": streamReset(),
		"not landed":   fault.Before(codes.Unknown, "outcome unknown"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, store := onceWorld(t)
			h := w.fault(fault.Rule{Method: "Commit", Tag: "queue=Q", Nth: 1, Do: action})
			r := w.handle(w.queue, processor.Once{Store: store, Operation: operationOf, Effect: grant})
			w.sendPayload("k five", "m1")
			w.applied(h)
			r.outcome(processor.Done, 1)
			require.NoError(t, r.stop())
			require.EqualValues(t, 1, w.effects("k"))
			require.Zero(t, w.left("m1"))
			require.Len(t, r.Figures().Deliveries, 1)
		})
	}
}

// An operation record costs one read more than Tx.
func TestOnceCosts(t *testing.T) {
	t.Parallel()
	w, store := onceWorld(t)
	r := w.handle(w.queue, processor.Once{Store: store, Operation: operationOf, Effect: func(context.Context, *spanner.ReadWriteTransaction, *queue.Message) (idempotency.Result, error) {
		return idempotency.Result{}, nil
	}})
	before := w.db.Front().RPCs()
	for i := range 10 {
		w.sendPayload(fmt.Sprintf("k%d five", i), fmt.Sprint("m", i))
	}
	r.outcome(processor.Done, 10)
	require.NoError(t, r.stop())
	after := w.db.Front().RPCs()
	count := func(method string) int64 { return after[method] - before[method] }
	t.Logf("ack %d, read %d, commit %d (10 of them of the sends)", count("ExecuteSql"), count("StreamingRead"), count("Commit"))
	require.EqualValues(t, 10, count("ExecuteSql"))
	require.EqualValues(t, 12, count("StreamingRead"), "one a message, and two at the start that look for the tables")
	require.EqualValues(t, 20, count("Commit"))
}

// A run of Effect that was given up goes on beside the run that commits.
func TestOnceGivenUpRunGoesOn(t *testing.T) {
	t.Parallel()
	w, store := onceWorld(t)
	w.sendPayload("k five", "m1")
	aborted := w.fault(fault.Rule{Method: "StreamingRead", Match: func(c fault.Call) bool {
		read, ok := c.Request.(*spannerpb.ReadRequest)
		return ok && read.GetTable() == "Effects"
	}, Nth: 1, Do: fault.Abort()})
	late, ended := make(chan struct{}), make(chan struct{})
	h := processor.Once{Store: store, Operation: operationOf, Effect: func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) (idempotency.Result, error) {
		r, err := grant(ctx, tx, m)
		if spanner.ErrCode(err) == codes.Aborted {
			<-late
			defer close(ended)
		} else {
			close(late)
		}
		return r, err
	}}
	r := w.handle(w.queue, h, func(c *processor.Config) { c.HandlerTimeout = 100 * time.Millisecond })
	w.applied(aborted)
	<-ended
	r.outcome(processor.Done, 1)
	require.NoError(t, r.stop())
}
