package processor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/lease"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// kindsQueue has the kind in its key.
var kindsQueue = schema.Queue{
	Name:       "Kinds",
	KeyColumns: []schema.Column{{Name: "Kind", Type: schema.String(20), NotNull: true}, {Name: "Id", Type: schema.String(64), NotNull: true}},
	Payload:    schema.Bytes(schema.Max),
}

// newKinds is a world with the queue of kinds beside Q.
func newKinds(t *testing.T) (*world, *queue.Queue) {
	t.Helper()
	ddl := []string{kindsQueue.DDL()}
	ddl = append(ddl, schema.Attempts{Queue: kindsQueue}.Statements()...)
	ddl = append(ddl, schema.DeadLetters{Queue: kindsQueue}.Statements()...)
	w := newWorld(t, ddl...)
	q, err := queue.New(w.client, kindsQueue, queue.LeaseLength(leaseLength))
	require.NoError(t, err)
	return w, q
}

func sendKind(t *testing.T, q *queue.Queue, kind, payload string, ids ...string) {
	t.Helper()
	for _, id := range ids {
		require.NoError(t, q.Send(t.Context(), []queue.Outgoing{{Key: spanner.Key{kind, id}, Payload: []byte(payload)}}))
	}
}

func effectOf(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
	return effect(ctx, tx, m.Key[1].(string))
}

func reasons(t *testing.T, w *world) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := w.client.Single().Query(t.Context(), spanner.NewStatement("SELECT Id, Reason, Payload FROM KindsDeadLetters")).Do(func(r *spanner.Row) error {
		var id, reason string
		var payload []byte
		if err := r.Columns(&id, &reason, &payload); err != nil {
			return err
		}
		all[id] = reason + ": " + string(payload)
		return nil
	})
	require.NoError(t, err)
	return all
}

func TestMux(t *testing.T) {
	t.Parallel()
	w, q := newKinds(t)
	type order struct{ Amount int64 }
	var atOnce, most atomic.Int64
	mux := processor.Mux{
		Kind: processor.KeyColumn("Kind"),
		Routes: map[string]processor.Route{
			"plain": {Handler: processor.Tx(effectOf)},
			"order": {Handler: processor.Typed(processor.JSON[order],
				func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message, v order) error {
					if v.Amount != 3889108265204450030 {
						return fmt.Errorf("amount %d", v.Amount)
					}
					return effectOf(ctx, tx, m)
				})},
			"call": {Concurrency: 1, Handler: processor.Call[int]{
				Call: func(ctx context.Context, _ *lease.Held) (int, error) {
					most.Store(max(most.Load(), atOnce.Add(1)))
					defer atOnce.Add(-1)
					return 0, sleep(ctx, 20*time.Millisecond)
				},
				Settle: func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message, _ int) error {
					return effectOf(ctx, tx, m)
				},
			}},
			"strict": {Policy: processor.Policy{MaxAttempts: 2}, Handler: processor.Tx(
				func(context.Context, *spanner.ReadWriteTransaction, *queue.Message) error { return errors.New("no") })},
		},
	}
	r := w.handle(q, mux.Handler())
	sendKind(t, q, "plain", "", "p1", "p2")
	sendKind(t, q, "order", `{"Amount":3889108265204450030}`, "o1")
	sendKind(t, q, "order", `{"Amount":1.5}`, "o2")
	sendKind(t, q, "order", "not JSON", "o3")
	sendKind(t, q, "call", "", "c1", "c2", "c3")
	sendKind(t, q, "strict", "", "s1")
	r.outcome(processor.Done, 6)
	r.outcome(processor.DeadLettered, 3)
	require.NoError(t, r.stop())
	for _, id := range []string{"p1", "p2", "o1", "c1", "c2", "c3"} {
		require.EqualValues(t, 1, w.effects(id), id)
	}
	require.EqualValues(t, 1, most.Load(), "one call at a time")
	require.Equal(t, map[string]string{"o2": `undecodable: {"Amount":1.5}`, "o3": "undecodable: not JSON", "s1": "attempts: "}, reasons(t, w))
	require.EqualValues(t, 1, r.Figures().Deliveries[processor.Retried])
}

// A kind that nobody knows is left alone at first, and dead-lettered when it is old.
func TestMuxUnknownKind(t *testing.T) {
	t.Parallel()
	w, q := newKinds(t)
	mux := processor.Mux{
		Kind:         processor.KeyColumn("Kind"),
		Routes:       map[string]processor.Route{"known": {Handler: processor.Tx(effectOf)}},
		UnknownAfter: time.Hour,
	}
	written := w.fault(fault.Rule{Method: "Commit", Tag: "attempts=Kinds", Do: fault.Delay(0)})
	old := w.handle(q, mux.Handler(), maxAttempts(1))
	sendKind(t, q, "new", "", "n1", "n2")
	sendKind(t, q, "known", "", "k1")
	old.outcome(processor.Done, 1)
	wait(t, "both to be seen", func() bool { return old.Figures().Deliveries[processor.Interrupted] >= 2 })
	wait(t, "both to be seen again", func() bool { return old.Figures().Deliveries[processor.Interrupted] >= 4 })
	require.NoError(t, old.stop())
	require.Empty(t, reasons(t, w))
	require.Zero(t, written.Matched(), "nothing is written about them")

	// A worker that knows the kind takes one, and only one of them is left to grow old.
	mux.Routes["new"] = processor.Route{Handler: processor.Tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		if m.Attempt != 1 {
			return processor.Discard(fmt.Errorf("attempt %d: seeing an unknown kind is no attempt", m.Attempt))
		}
		if m.Key[1] == "n2" {
			return processor.Snooze(time.Millisecond)
		}
		return effectOf(ctx, tx, m)
	})}
	knows := w.handle(q, mux.Handler())
	knows.outcome(processor.Done, 1)
	require.NoError(t, knows.stop())
	require.EqualValues(t, 1, w.effects("n1"))

	delete(mux.Routes, "new")
	mux.UnknownAfter = leaseLength
	old = w.handle(q, mux.Handler())
	old.outcome(processor.DeadLettered, 1)
	require.NoError(t, old.stop())
	require.Equal(t, map[string]string{"n2": "unknown kind: "}, reasons(t, w))
}

// A Mux may be the handler of another's route. What it leaves open is the outer route's, and then the processor's.
func TestMuxWithinAMux(t *testing.T) {
	t.Parallel()
	w, q := newKinds(t)
	no := func(context.Context, *spanner.ReadWriteTransaction, *queue.Message) error { return errors.New("no") }
	inner := processor.Mux{
		Kind: processor.KeyColumn("Id"),
		Routes: map[string]processor.Route{
			"ok":      {Handler: processor.Tx(effectOf)},
			"default": {Handler: processor.Tx(no)},
			"own":     {Handler: processor.Tx(no), Policy: processor.Policy{MaxAttempts: 3}},
		},
	}
	mux := processor.Mux{
		Kind: processor.KeyColumn("Kind"),
		Routes: map[string]processor.Route{
			"strict": {Handler: inner.Handler(), Policy: processor.Policy{MaxAttempts: 2}},
			"usual":  {Handler: inner.Handler()},
		},
	}
	r := w.handle(q, mux.Handler(), maxAttempts(4))
	sendKind(t, q, "strict", "", "ok", "default", "own")
	sendKind(t, q, "usual", "", "default")
	r.outcome(processor.Done, 1)
	r.outcome(processor.DeadLettered, 3)
	require.NoError(t, r.stop())
	require.EqualValues(t, 1, w.effects("ok"))
	attempts := map[string]int64{}
	require.NoError(t, w.client.Single().Query(t.Context(), spanner.NewStatement("SELECT Kind, Id, Attempts FROM KindsDeadLetters")).Do(func(r *spanner.Row) error {
		var kind, id string
		var n int64
		err := r.Columns(&kind, &id, &n)
		attempts[kind+" "+id] = n
		return err
	}))
	require.Equal(t, map[string]int64{"strict default": 2, "strict own": 3, "usual default": 4}, attempts)
}

func TestProtoPayload(t *testing.T) {
	t.Parallel()
	v, err := processor.Proto[*wrapperspb.Int64Value]([]byte{8, 42})
	require.NoError(t, err)
	require.EqualValues(t, 42, v.Value)
	_, err = processor.Proto[*wrapperspb.Int64Value]([]byte{8})
	require.Error(t, err)
	one, err := processor.JSON[map[string]json.Number]([]byte(`{"id":145688415796432520}`))
	require.NoError(t, err)
	require.Equal(t, json.Number("145688415796432520"), one["id"])
}

// One Mux for two processors.
func TestMuxServesTwoProcessors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	h := processor.Mux{
		Kind: func(*queue.Message) (string, error) { return "a", nil },
		Routes: map[string]processor.Route{"a": {Concurrency: 1, Handler: processor.Tx(
			func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
				if m.Key[0] == "m1" {
					close(entered)
					<-leave
				}
				return addOne(ctx, tx, m)
			})}},
	}.Handler()
	w.send("m1")
	r := w.handle(w.queue, h)
	<-entered
	_, err := processor.New(w.openQueue(w.client), h, processor.Config{})
	require.NoError(t, err)
	close(leave)
	r.outcome(processor.Done, 1)
	require.NoError(t, r.stop())
	w.once("m1")
}
