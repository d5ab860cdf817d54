package txn

import (
	"context"
	"sync"
	"time"
)

// Client is a connection as the transactions see it. One that has carried an RPC of a transaction answers for it until
// another one does; when it closes, the transactions that nobody takes over within the Manager's bound are ended.
type Client struct {
	m *Manager

	mu     sync.Mutex
	txns   map[*Txn]struct{}
	closed bool
	timer  *time.Timer // runs expire once closed
}

// NewClient makes a connection known. Close it when it closes.
func (m *Manager) NewClient() *Client { return &Client{m: m, txns: make(map[*Txn]struct{})} }

// Close says that the connection is gone.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.armLocked()
}

// Follow makes c answer for the transaction. c may be nil.
func (t *Txn) Follow(c *Client) {
	if c == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.client
	if before == c || t.state.ended() {
		return
	}
	before.forget(t)
	t.client = c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.txns[t] = struct{}{}
	c.armLocked()
}

func (c *Client) forget(t *Txn) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.txns, t)
}

// armLocked starts the clock of a closed connection that still answers for transactions.
func (c *Client) armLocked() {
	if c.closed && c.timer == nil && len(c.txns) > 0 {
		c.timer = time.AfterFunc(c.m.closedBound, c.expire)
	}
}

// expire ends the transactions that nobody took over. Those with an RPC under way get another round: RPCs of a closed
// connection end soon.
func (c *Client) expire() {
	if !c.m.join() {
		return
	}
	defer c.m.running.Done()
	c.mu.Lock()
	c.timer = nil
	left := make([]*Txn, 0, len(c.txns))
	for t := range c.txns {
		left = append(left, t)
	}
	c.mu.Unlock()
	for _, t := range left {
		if t.busy() {
			continue
		}
		t.Abort(context.Background(), "The client's connection was closed, and the transaction ended.")
		c.forget(t)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armLocked()
}
