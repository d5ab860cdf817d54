package queuetest

import (
	"context"
	"sync"
)

// locks gives each key to one transaction at a time. A transaction that holds keys already waits only for younger ones;
// for an older one it gives way: it is rolled back and runs again when that one has ended. So nobody waits in a circle.
type locks struct {
	mu   sync.Mutex
	held map[string]*tx
}

// giveWay says that the transaction has to be rolled back and to wait for another one.
type giveWay struct{ to *tx }

func (*giveWay) Error() string {
	return "queuetest: the transaction gives way to an older one and is run again"
}

// wait waits until the other transaction has ended.
func (w *giveWay) wait(ctx context.Context) error {
	select {
	case <-w.to.ended:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

// lock takes the key for the transaction and waits for it.
func (l *locks) lock(ctx context.Context, t *tx, id string) error {
	for {
		l.mu.Lock()
		owner := l.held[id]
		switch {
		case t.closed:
			l.mu.Unlock()
			return errOver
		case owner == nil || owner == t:
			l.held[id] = t
			t.locked[id] = struct{}{}
			l.mu.Unlock()
			return nil
		}
		holds := len(t.locked) > 0
		l.mu.Unlock()
		if holds && owner.age < t.age {
			return &giveWay{to: owner}
		}
		select {
		case <-owner.ended:
		case <-ctx.Done():
			return ended(ctx)
		}
	}
}

// unlock gives back all keys of the transaction, for good.
func (l *locks) unlock(t *tx) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range t.locked {
		delete(l.held, id)
	}
	t.closed = true
	close(t.ended)
}
