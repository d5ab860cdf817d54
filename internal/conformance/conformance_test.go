package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/lease"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

func TestMain(m *testing.M) { emulatortest.Main(m) }

// skips is the documented list: what a kind of queue cannot show, and why.
var skips = map[string]map[need]string{
	"memory": {
		spannerTx:   "there is no Spanner transaction in memory: what a handler did is not undone",
		frontFaults: "there is no front before it; queuetest has faults of its own, and lease tests with them",
	},
	"table on the bare emulator": {
		frontFaults: "there is no front before it",
		atOnce:      "it keeps one transaction a session, and Google's client puts all of its own on one session",
	},
	"service (table: false)": {frontFaults: "there is no front before it"},
	"service (table: true)":  {frontFaults: "there is no front before it"},
}

// scenario is one promise.
type scenario struct {
	name  string
	needs []need
	run   func(*house)
}

var scenarios = []scenario{
	{"every message takes effect once", []need{atOnce}, everyMessageOnce},
	{"a batch takes effect once for each", []need{atOnce}, batchOnce},
	{"a call is settled once", []need{atOnce}, callOnce},
	{"a late holder's every write misses", nil, lateHolderMisses},
	{"a resend is another delivery", nil, resendIsAnother},
	{"failures are retried and then dead-lettered", []need{atOnce}, failuresAreCounted},
	{"a snooze is no failure, and never early", []need{atOnce}, snoozeIsNoFailure},
	{"a deferral keeps others away", []need{atOnce}, deferral},
	{"a stop leaves the rest to others", []need{atOnce}, stopLeavesTheRest},
	{"an interrupted handler uses no attempt", []need{spannerTx, atOnce}, interruptedUsesNoAttempt},
	{"order-ignoring sends", nil, sends},
	{"a failed handler leaves nothing", []need{spannerTx, atOnce}, failedLeavesNothing},
	{"lost answers of commits", []need{spannerTx, atOnce, frontFaults}, lostAnswers},
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			for _, s := range scenarios {
				t.Run(s.name, func(t *testing.T) {
					t.Parallel()
					for _, n := range s.needs {
						reason, documented := skips[k.name][n]
						require.Equal(t, !k.has(n), documented, "the list of skips and the kind's abilities differ for %q", n)
						if documented {
							t.Skipf("it needs %s, and %s", n, reason)
						}
					}
					s.run(k.make(t))
				})
			}
		})
	}
}

const patience = 60 * time.Second

func (h *house) wait(what string, condition func() bool) {
	h.t.Helper()
	require.Eventually(h.t, condition, patience, 5*time.Millisecond, "%s", what)
}

func ids(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("m%02d", i)
	}
	return all
}

func (h *house) send(q *queue.Queue, ids ...string) {
	h.t.Helper()
	out := make([]queue.Outgoing, len(ids))
	for i, id := range ids {
		out[i] = queue.Outgoing{Key: spanner.Key{id}, Payload: []byte("payload of " + id)}
	}
	require.NoError(h.t, q.Send(h.t.Context(), out))
}

func (h *house) left(q *queue.Queue) int64 {
	h.t.Helper()
	s, err := q.Stats(h.t.Context())
	require.NoError(h.t, err)
	return s.Ready + s.Delayed
}

func (h *house) once(q *queue.Queue, ids ...string) {
	h.t.Helper()
	for _, id := range ids {
		require.EqualValues(h.t, 1, h.effects(id), "effects of %s", id)
	}
	require.Zero(h.t, h.left(q))
}

// worker is a processor that runs.
type worker struct {
	*processor.Processor
	h    *house
	stop func() error
}

func (h *house) work(handler processor.Handler, changes ...func(*processor.Config)) *worker {
	h.t.Helper()
	config := processor.Config{
		Concurrency: 2, MaxAttempts: 3, CommitTimeout: time.Second,
		Backoff: processor.Backoff{Min: 10 * time.Millisecond, Max: 50 * time.Millisecond},
		Logger:  slog.New(slog.DiscardHandler),
	}
	for _, change := range changes {
		change(&config)
	}
	p, err := processor.New(h.open(), handler, config)
	require.NoError(h.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- p.Run(ctx) }()
	stop := sync.OnceValue(func() error {
		cancel()
		return <-ran
	})
	h.t.Cleanup(func() { _ = stop() })
	return &worker{p, h, stop}
}

func (w *worker) ended(o processor.Outcome) int64 { return w.Figures().Deliveries[o] }

func everyMessageOnce(h *house) {
	q := h.open()
	all := ids(20)
	h.send(q, all...)
	a, b := h.work(processor.Tx(h.effect)), h.work(processor.Tx(h.effect))
	h.wait("all to be done", func() bool { return a.ended(processor.Done)+b.ended(processor.Done) == 20 })
	require.NoError(h.t, a.stop())
	require.NoError(h.t, b.stop())
	h.once(q, all...)
}

func batchOnce(h *house) {
	q := h.open()
	all := ids(20)
	h.send(q, all...)
	w := h.work(processor.Batch(func(ctx context.Context, tx *spanner.ReadWriteTransaction, ms []*queue.Message) error {
		for _, m := range ms {
			if err := h.effect(ctx, tx, m); err != nil {
				return err
			}
		}
		return nil
	}))
	h.wait("all to be done", func() bool { return w.ended(processor.Done) == 20 })
	require.NoError(h.t, w.stop())
	h.once(q, all...)
	require.Less(h.t, w.Figures().Runs, int64(20))
}

// call makes a Call handler that has its effect in Settle.
func (h *house) call(f func(context.Context, *lease.Held) error) processor.Handler {
	return processor.Call[int]{
		Call: func(ctx context.Context, held *lease.Held) (int, error) { return 0, f(ctx, held) },
		Settle: func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message, _ int) error {
			return h.effect(ctx, tx, m)
		},
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func callOnce(h *house) {
	q := h.open()
	h.send(q, "m1")
	var mu sync.Mutex
	calls := 0
	handler := h.call(func(ctx context.Context, _ *lease.Held) error {
		mu.Lock()
		calls++
		mu.Unlock()
		return sleep(ctx, 5*h.length/2) // longer than two leases
	})
	a, b := h.work(handler), h.work(handler)
	h.wait("it to be done", func() bool { return a.ended(processor.Done)+b.ended(processor.Done) == 1 })
	require.NoError(h.t, a.stop())
	require.NoError(h.t, b.stop())
	h.once(q, "m1")
	mu.Lock()
	defer mu.Unlock()
	require.Equal(h.t, 1, calls, "renewals keep others away")
}

// receive takes one message by a bare stream.
func (h *house) receive(q *queue.Queue) *queue.Message {
	h.t.Helper()
	for m, err := range q.Receive(h.t.Context(), queue.ReceiveOptions{MaxDuration: patience}) {
		require.NoError(h.t, err)
		return m
	}
	h.t.Fatal("nothing was received")
	return nil
}

// settle runs a transaction that acknowledges, and does something besides.
func settle(ctx context.Context, q *queue.Queue, m *queue.Message, more func(context.Context, backend.Tx) error) error {
	return q.Backend().RunTx(ctx, backend.TxOptions{Tag: "late"}, func(ctx context.Context, tx backend.Tx) error {
		if err := tx.Ack(ctx, m.Delivery()); err != nil {
			return err
		}
		return more(ctx, tx)
	})
}

func nothing(context.Context, backend.Tx) error { return nil }

func lateHolderMisses(h *house) {
	q := h.open()
	h.send(q, "m1")
	late := h.receive(q)
	// Another one gets the message when the lease has ended, and settles it.
	other := h.open()
	next := h.receive(other)
	require.NoError(h.t, settle(h.t.Context(), other, next, func(ctx context.Context, tx backend.Tx) error {
		return h.effect(ctx, tx.Spanner(), next)
	}))
	for what, more := range map[string]func(context.Context, backend.Tx) error{
		"ack": nothing,
		"resend": func(ctx context.Context, tx backend.Tx) error {
			return tx.Send(ctx, backend.Outgoing{Key: late.Key, DeliverTime: time.Now().Add(time.Hour)})
		},
	} {
		require.ErrorIs(h.t, settle(h.t.Context(), q, late, more), queue.ErrNotHeld, what)
	}
	missing := 0
	err := q.Backend().RunTx(h.t.Context(), backend.TxOptions{}, func(ctx context.Context, tx backend.Tx) error {
		indexes, err := tx.AckAll(ctx, []backend.Delivery{late.Delivery()})
		missing = len(indexes)
		return err
	})
	require.NoError(h.t, err)
	require.Equal(h.t, 1, missing)
	renewed, err := q.Renew(h.t.Context(), late.Lease)
	require.NoError(h.t, err)
	require.False(h.t, renewed[0].Renewed)
	h.once(q, "m1")
}

func resendIsAnother(h *house) {
	q := h.open()
	h.send(q, "m1")
	first := h.receive(q)
	now, err := q.ServerTime(h.t.Context())
	require.NoError(h.t, err)
	at := now.Add(time.Second) // a time that is past by the commit would be replaced
	require.NoError(h.t, settle(h.t.Context(), q, first, func(ctx context.Context, tx backend.Tx) error {
		return tx.Send(ctx, backend.Outgoing{Key: first.Key, Payload: []byte("further"), DeliverTime: at})
	}))
	require.ErrorIs(h.t, settle(h.t.Context(), q, first, nothing), queue.ErrNotHeld, "the first delivery is gone")
	found, err := q.Probe(h.t.Context(), first)
	require.NoError(h.t, err)
	require.Equal(h.t, queue.Moved, found)
	second := h.receive(q)
	require.True(h.t, second.DeliverTime.Equal(at), "%v, want %v", second.DeliverTime, at)
	require.Equal(h.t, "further", string(second.Payload))
	require.NoError(h.t, settle(h.t.Context(), q, second, nothing))
	found, err = q.Probe(h.t.Context(), second)
	require.NoError(h.t, err)
	require.Equal(h.t, queue.Gone, found)
}

func failuresAreCounted(h *house) {
	q := h.open()
	h.send(q, "bad", "good")
	var mu sync.Mutex
	var attempts []int
	w := h.work(processor.Tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		if m.Key[0] == "good" {
			return h.effect(ctx, tx, m)
		}
		mu.Lock()
		defer mu.Unlock()
		attempts = append(attempts, m.Attempt)
		return errors.New("no")
	}))
	h.wait("the end", func() bool { return w.ended(processor.DeadLettered) == 1 && w.ended(processor.Done) == 1 })
	require.NoError(h.t, w.stop())
	require.Equal(h.t, []int{1, 2, 3}, slices.Compact(attempts))
	require.EqualValues(h.t, 2, w.ended(processor.Retried))
	require.Equal(h.t, 1, h.letters())
	require.Zero(h.t, h.effects("bad"))
	h.once(q, "good")
}

func snoozeIsNoFailure(h *house) {
	q := h.open()
	h.send(q, "m1")
	const pause = 300 * time.Millisecond
	var mu sync.Mutex
	var starts []time.Time
	w := h.work(processor.Tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		mu.Lock()
		starts = append(starts, time.Now())
		n := len(starts)
		mu.Unlock()
		if m.Attempt != 1 {
			return processor.Discard(fmt.Errorf("attempt %d", m.Attempt))
		}
		if n <= 5 {
			return processor.Snooze(pause)
		}
		return h.effect(ctx, tx, m)
	}), func(c *processor.Config) { c.MaxAttempts = 1 })
	h.wait("the end", func() bool { return w.ended(processor.Done) == 1 })
	require.NoError(h.t, w.stop())
	require.EqualValues(h.t, 5, w.ended(processor.Snoozed))
	for i := 1; i < len(starts); i++ {
		require.GreaterOrEqual(h.t, starts[i].Sub(starts[i-1]), pause)
	}
	h.once(q, "m1")
}

func deferral(h *house) {
	q := h.open()
	h.send(q, "m1")
	var mu sync.Mutex
	calls := 0
	handler := h.call(func(ctx context.Context, held *lease.Held) error {
		mu.Lock()
		calls++
		mu.Unlock()
		if err := held.Defer(ctx, patience); err != nil {
			return err
		}
		return sleep(ctx, 3*h.length/2)
	})
	a, b := h.work(handler), h.work(handler)
	h.wait("it to be done", func() bool { return a.ended(processor.Done)+b.ended(processor.Done) == 1 })
	require.NoError(h.t, a.stop())
	require.NoError(h.t, b.stop())
	require.Equal(h.t, 1, calls)
	h.once(q, "m1")
}

func stopLeavesTheRest(h *house) {
	q := h.open()
	all := ids(4)
	h.send(q, all...)
	entered, open := make(chan struct{}, 10), make(chan struct{})
	a := h.work(processor.Tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		entered <- struct{}{}
		<-open
		return h.effect(ctx, tx, m)
	}), func(c *processor.Config) { c.Concurrency = 1; c.Receiver.LowWater = 4 })
	<-entered
	stopped := make(chan error, 1)
	go func() { stopped <- a.stop() }()
	h.wait("the stop to be seen", func() bool { return a.Figures().Receiver.Waiting == 0 })
	close(open)
	require.NoError(h.t, <-stopped)
	require.Len(h.t, entered, 0, "nothing is started after the stop")
	b := h.work(processor.Tx(h.effect))
	h.wait("the rest", func() bool { return b.ended(processor.Done) == 3 })
	require.NoError(h.t, b.stop())
	h.once(q, all...)
}

func interruptedUsesNoAttempt(h *house) {
	q := h.open()
	h.send(q, "m1")
	entered := make(chan struct{})
	a := h.work(processor.Tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		if err := h.effect(ctx, tx, m); err != nil {
			return err
		}
		close(entered)
		<-ctx.Done()
		return ctx.Err()
	}), func(c *processor.Config) { c.MaxAttempts, c.DrainTimeout = 1, 50*time.Millisecond })
	<-entered
	require.NoError(h.t, a.stop())
	require.EqualValues(h.t, 1, a.ended(processor.Interrupted))
	var attempt int
	b := h.work(processor.Tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		attempt = m.Attempt
		return h.effect(ctx, tx, m)
	}), func(c *processor.Config) { c.MaxAttempts = 1 })
	h.wait("it to be done", func() bool { return b.ended(processor.Done) == 1 })
	require.NoError(h.t, b.stop())
	require.Equal(h.t, 1, attempt)
	h.once(q, "m1")
}

func sends(h *house) {
	q := h.open()
	ctx := h.t.Context()
	one := queue.Outgoing{Key: spanner.Key{"m1"}, Payload: []byte("a")}
	require.NoError(h.t, q.Send(ctx, []queue.Outgoing{one}))
	require.ErrorIs(h.t, q.Send(ctx, []queue.Outgoing{one}), queue.ErrExists)
	require.NoError(h.t, q.Send(ctx, []queue.Outgoing{one}, queue.OrIgnore()))
	other := one
	other.Payload = []byte("b")
	require.ErrorIs(h.t, q.Send(ctx, []queue.Outgoing{other}, queue.OrIgnore()), queue.ErrMismatch)
	require.ErrorIs(h.t, q.Send(ctx, []queue.Outgoing{{Key: spanner.Key{7}}}), queue.ErrInvalid)
	later := queue.Outgoing{Key: spanner.Key{"m2"}, DeliverTime: time.Now().Add(time.Hour)}
	require.NoError(h.t, q.Send(ctx, []queue.Outgoing{later}))
	s, err := q.Stats(ctx)
	require.NoError(h.t, err)
	require.EqualValues(h.t, 1, s.Ready)
	require.EqualValues(h.t, 1, s.Delayed)
	n, err := q.Purge(ctx)
	require.NoError(h.t, err)
	require.Equal(h.t, 2, n)
}

func failedLeavesNothing(h *house) {
	q := h.open()
	h.send(q, "m1")
	w := h.work(processor.Tx(func(ctx context.Context, tx *spanner.ReadWriteTransaction, m *queue.Message) error {
		if err := h.effect(ctx, tx, m); err != nil {
			return err
		}
		switch m.Attempt {
		case 1:
			return errors.New("no")
		case 2:
			panic("no")
		}
		return nil
	}))
	h.wait("it to be done", func() bool { return w.ended(processor.Done) == 1 })
	require.NoError(h.t, w.stop())
	require.EqualValues(h.t, 2, w.ended(processor.Retried))
	h.once(q, "m1")
}

func lostAnswers(h *house) {
	q := h.open()
	all := ids(8)
	tag := "queue=" + h.name
	var applied []*fault.Handle
	for i, action := range []fault.Action{
		fault.Drop(), fault.After(codes.Internal, "broken"), fault.After(codes.Unknown, "broken"),
		fault.After(codes.Internal, "stream terminated by RST_STREAM with error code: INTERNAL_ERROR"),
		fault.Before(codes.Unknown, "broken"), fault.Abort(), fault.Forget(),
	} {
		applied = append(applied, h.faults(fault.Rule{Method: "Commit", Tag: tag, Nth: i + 1, Do: action}))
	}
	h.send(q, all...)
	w := h.work(processor.Tx(h.effect), func(c *processor.Config) { c.Concurrency = 1; c.CommitTimeout = 2 * time.Second })
	h.wait("all to be done", func() bool { return w.ended(processor.Done)+w.ended(processor.SettledElsewhere) == 8 })
	require.NoError(h.t, w.stop())
	h.once(q, all...)
	require.Zero(h.t, w.ended(processor.Retried)+w.ended(processor.DeadLettered))
	hit := 0
	for _, f := range applied {
		hit += f.Applied()
	}
	// A commit that a slow machine has timed out already may take a fault's turn; most of them must have hit.
	require.GreaterOrEqual(h.t, hit, len(applied)-2)
}
