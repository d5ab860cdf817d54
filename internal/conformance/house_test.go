package conformance_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/processor"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
)

// patience bounds every wait for a condition.
const patience = 60 * time.Second

// house is a queue of some kind, with a table of effects.
type house struct {
	t      *testing.T
	length time.Duration // of a lease
	name   string        // of the queue

	// open returns a handle for one more worker, or for somebody else who is at work at the same time.
	open func(...queue.Option) *queue.Queue
	// connect returns a client for one who is at work; nil where there is none.
	connect func() *spanner.Client
	// tx makes a handler of one message. effect adds 1 to the message's number, in the transaction if the kind has one.
	tx func(func(ctx context.Context, m *queue.Message, effect func() error) error) processor.Handler
	// effect does the same in a transaction of Google's client, nil in memory. It is nil where there are none.
	effect func(context.Context, *spanner.ReadWriteTransaction, *queue.Message) error
	// effects returns the number.
	effects func(id string) int64
	// letters returns how many dead letters there are.
	letters func() int
	// faults are those of the front; nil where there is none.
	faults func(fault.Rule) *fault.Handle
}

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

func outgoing(id string) queue.Outgoing {
	return queue.Outgoing{Key: spanner.Key{id}, Payload: []byte("payload of " + id)}
}

func (h *house) send(q *queue.Queue, ids ...string) {
	h.t.Helper()
	out := make([]queue.Outgoing, len(ids))
	for i, id := range ids {
		out[i] = outgoing(id)
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

// just is a handler that does nothing but its effect.
func just(_ context.Context, _ *queue.Message, effect func() error) error { return effect() }

// worker is a processor that runs.
type worker struct {
	*processor.Processor
	stop     func() error
	stopping chan struct{} // closed when stop has been called
	logs     *logs
}

func (h *house) work(handler processor.Handler, changes ...func(*processor.Config)) *worker {
	h.t.Helper()
	w := &worker{logs: new(logs), stopping: make(chan struct{})}
	config := processor.Config{
		Concurrency: 2, MaxAttempts: 3, CommitTimeout: time.Second,
		Backoff: processor.Backoff{Min: 10 * time.Millisecond, Max: 50 * time.Millisecond},
		Logger:  slog.New(slog.NewTextHandler(w.logs, nil)),
	}
	for _, change := range changes {
		change(&config)
	}
	p, err := processor.New(h.open(), handler, config)
	require.NoError(h.t, err)
	w.Processor = p
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- p.Run(ctx) }()
	w.stop = sync.OnceValue(func() error {
		cancel()
		close(w.stopping)
		return <-ran
	})
	h.t.Cleanup(func() {
		_ = w.stop()
		if h.t.Failed() {
			h.t.Logf("log of the processor:\n%s", w.logs)
		}
	})
	return w
}

func (w *worker) ended(o processor.Outcome) int64 { return w.Figures().Deliveries[o] }

// logs keeps what was logged.
type logs struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
