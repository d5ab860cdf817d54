package conformance_test

import (
	"context"
	"iter"
	"sync"

	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/queue"
)

// clientEach is a queue table for the bare emulator: it keeps one transaction a session, and Google's client puts all of
// its own on one session (two at once on one client fail with "Transaction not found"). So everything that goes on at the
// same time, a receiver, a renewal, each handler, has a handle and a client of its own while it lasts. Transactions of
// different clients meet as anywhere: the emulator aborts one of them, and its client runs it again.
type clientEach struct {
	backend.Queue // for what is read and checked
	more          func() backend.Queue

	mu   sync.Mutex
	free []backend.Queue
}

var (
	_ backend.Ledger   = (*clientEach)(nil)
	_ backend.Releaser = (*clientEach)(nil)
)

func (c *clientEach) take() backend.Queue {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.free)
	if n == 0 {
		return c.more()
	}
	q := c.free[n-1]
	c.free = c.free[:n-1]
	return q
}

func (c *clientEach) giveBack(q backend.Queue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, q)
}

func (c *clientEach) Send(ctx context.Context, messages []backend.Outgoing) error {
	q := c.take()
	defer c.giveBack(q)
	return q.Send(ctx, messages)
}

func (c *clientEach) SendOrIgnore(ctx context.Context, messages []backend.Outgoing) (map[int]backend.Delivery, error) {
	q := c.take()
	defer c.giveBack(q)
	return q.SendOrIgnore(ctx, messages)
}

func (c *clientEach) Receive(ctx context.Context, r backend.ReceiveRequest) iter.Seq2[backend.Delivery, error] {
	return func(yield func(backend.Delivery, error) bool) {
		q := c.take()
		defer c.giveBack(q)
		q.Receive(ctx, r)(yield)
	}
}

func (c *clientEach) Renew(ctx context.Context, tokens []string) (map[string]backend.Renewal, error) {
	q := c.take()
	defer c.giveBack(q)
	return q.Renew(ctx, tokens)
}

func (c *clientEach) RunTx(ctx context.Context, o backend.TxOptions, f func(context.Context, backend.Tx) error) error {
	q := c.take()
	defer c.giveBack(q)
	return q.RunTx(ctx, o, f)
}

func (c *clientEach) Purge(ctx context.Context, n int) (int, error) {
	q := c.take()
	defer c.giveBack(q)
	return q.Purge(ctx, n)
}

func (c *clientEach) Release(ctx context.Context, ds []backend.Delivery) error {
	q := c.take()
	defer c.giveBack(q)
	return q.(backend.Releaser).Release(ctx, ds)
}

func (c *clientEach) CheckLedger(ctx context.Context) error {
	q := c.take()
	defer c.giveBack(q)
	return q.(backend.Ledger).CheckLedger(ctx)
}

func (c *clientEach) Begin(ctx context.Context, ds []backend.Delivery) ([]backend.Record, error) {
	q := c.take()
	defer c.giveBack(q)
	return q.(backend.Ledger).Begin(ctx, ds)
}

func (c *clientEach) TakeBack(ctx context.Context, d backend.Delivery) error {
	q := c.take()
	defer c.giveBack(q)
	return q.(backend.Ledger).TakeBack(ctx, d)
}

// withClientEach makes every handle of the house one that uses a client for each thing that goes on.
func withClientEach(h *house) *house {
	open := h.open
	h.open = func(opts ...queue.Option) *queue.Queue {
		more := func() backend.Queue { return open(opts...).Backend() }
		return queue.FromBackend(&clientEach{Queue: more(), more: more})
	}
	return h
}
