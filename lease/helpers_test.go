package lease

import (
	"context"
	"iter"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuetest"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
)

var jobs = schema.Queue{
	Name:       "Jobs",
	KeyColumns: []schema.Column{{Name: "Id", Type: schema.Int64(), NotNull: true}},
	Payload:    schema.Type{Kind: schema.KindBytes, Length: schema.Max},
}

// bubble runs a test of time rules: hours pass in microseconds.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, f)
}

// running is a receiver that runs.
type running struct {
	*Receiver
	t     *testing.T
	stop  context.CancelFunc
	ended chan error
}

func start(t *testing.T, q *queue.Queue, c Config) *running {
	t.Helper()
	return startWith(t, q, c, func(*Receiver) {})
}

// startWith changes the receiver before it runs.
func startWith(t *testing.T, q *queue.Queue, c Config, change func(*Receiver)) *running {
	t.Helper()
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	r, err := NewReceiver(q, c)
	require.NoError(t, err)
	change(r)
	ctx, stop := context.WithCancel(t.Context())
	running := &running{Receiver: r, t: t, stop: stop, ended: make(chan error, 1)}
	go func() { running.ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			r.releaseAll() // or the bubble's complaint about Run would hide the failure
		}
	})
	return running
}

// end stops the receiver and waits until Run has returned.
func (r *running) end() {
	r.t.Helper()
	r.stop()
	require.NoError(r.t, <-r.ended)
}

// next takes the next message, which must come within the given time.
func (r *running) next(within time.Duration) *Held {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), within)
	defer cancel()
	h, err := r.Next(ctx)
	require.NoError(r.t, err)
	return h
}

// none checks that no message comes within the given time.
func (r *running) none(within time.Duration) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), within)
	defer cancel()
	h, err := r.Next(ctx)
	require.ErrorIs(r.t, err, context.DeadlineExceeded, "a message came: %+v", h)
}

func send(t *testing.T, q *queue.Queue, ids ...int64) {
	t.Helper()
	var out []queue.Outgoing
	for _, id := range ids {
		out = append(out, queue.Outgoing{Key: spanner.Key{id}, Payload: []byte("work")})
	}
	require.NoError(t, q.Send(t.Context(), out))
}

func id(h *Held) int64 { return h.Message().Key[0].(int64) }

// leaseLength of the tests.
const leaseLength = 2 * time.Second

func memory(t *testing.T) *queuetest.Memory {
	t.Helper()
	return queuetest.New(jobs, queuetest.Options{LeaseLength: leaseLength})
}

// work works on the message for the given time, as a handler that watches its context does.
func work(ctx context.Context, h *Held, d time.Duration) error {
	ctx, cancel := h.Context(ctx)
	defer cancel()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ack acknowledges the message in a transaction of its own.
func ack(ctx context.Context, q *queue.Queue, h *Held) error {
	d := h.Message().Delivery()
	return q.Backend().RunTx(ctx, backend.TxOptions{}, func(ctx context.Context, tx backend.Tx) error { return tx.Ack(ctx, d) })
}

// renewals notes when renewal calls are made, and lets some of them fail.
type renewals struct {
	mu    sync.Mutex
	times []time.Time
}

func watchRenewals(m *queuetest.Memory, faults map[int]queuetest.Fault) *renewals {
	r := &renewals{}
	m.SetFault(queuetest.OpRenew, func(n int) queuetest.Fault {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.times = append(r.times, time.Now())
		return faults[n]
	})
	return r
}

// since returns how long after the given time the calls were made.
func (r *renewals) since(start time.Time) []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []time.Duration
	for _, at := range r.times {
		all = append(all, at.Sub(start))
	}
	return all
}

// endsAtOnce is a queue whose streams end at once.
type endsAtOnce struct{ *queuetest.Memory }

func (*endsAtOnce) Receive(context.Context, backend.ReceiveRequest) iter.Seq2[backend.Delivery, error] {
	return func(func(backend.Delivery, error) bool) {}
}

func (r *Receiver) releaseAll() {
	r.book.mu.Lock()
	var all []*entry
	for _, e := range r.book.index {
		all = append(all, e)
	}
	r.book.mu.Unlock()
	for _, e := range all {
		r.book.release(e)
	}
}
