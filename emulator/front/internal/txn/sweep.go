package txn

import (
	"context"
	"time"

	"github.com/spanqueue/spanqueue/emulator/front/internal/ident"
)

// memoryLength is how long the result of a transaction is kept, and how long one may do nothing while nobody waits.
const memoryLength = time.Hour

// Sweep forgets what is older than an hour: results of transactions, and transactions that did nothing for so long.
func (m *Manager) Sweep(ctx context.Context) {
	m.mu.Lock()
	m.memory.sweep(time.Now())
	m.mu.Unlock()
	m.abortAll(ctx, "The transaction was idle for too long, and was ended.", func(t *Txn) bool {
		return t.idleFor() > memoryLength
	})
}

// EndSession ends the transactions of a client's session that was deleted.
func (m *Manager) EndSession(ctx context.Context, session string) {
	h := hash(session)
	m.abortAll(ctx, "The transaction's session was deleted.", func(t *Txn) bool { return t.session == h })
}

// DropDatabase ends the transactions of a database that was dropped, and forgets the line before it.
func (m *Manager) DropDatabase(ctx context.Context, database string) {
	m.mu.Lock()
	delete(m.lines, database)
	m.mu.Unlock()
	m.abortAll(ctx, "The transaction's database was dropped.", func(t *Txn) bool { return t.Database == database })
}

// Close ends all transactions and waits for what timers have started. ctx bounds the rollbacks.
func (m *Manager) Close(ctx context.Context) {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.abortAll(ctx, "The server was closed.", func(*Txn) bool { return true })
	m.running.Wait()
}

func (m *Manager) abortAll(ctx context.Context, why string, of func(*Txn) bool) {
	var found []*Txn
	m.mu.Lock()
	for _, t := range m.live {
		if of(t) {
			found = append(found, t)
		}
	}
	m.mu.Unlock()
	for _, t := range found {
		t.Abort(ctx, why)
	}
}

// Tag is the transaction tag noted for the id, or "".
func (m *Manager) Tag(id ident.ReadWrite) string {
	m.mu.Lock()
	t := m.live[id.Number]
	m.mu.Unlock()
	if t == nil || id.Front != m.front {
		return ""
	}
	return t.Tag()
}

// Stats says how many transactions are open, and how many wait for the turn of their database, single-use commits and
// schema changes included.
func (m *Manager) Stats() (open, waiting int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.lines {
		waiting += l.Waiting()
	}
	return len(m.live), waiting
}

func (t *Txn) idleFor() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.working > 0 || t.state == Waiting {
		return 0
	}
	return time.Since(t.used)
}

func (t *Txn) busy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.working > 0
}

// Discard ends a transaction whose id its client was never told.
func (m *Manager) Discard(ctx context.Context, id ident.ReadWrite) {
	m.abortAll(ctx, "The answer that carries the transaction's id was not delivered.", func(t *Txn) bool { return t.id == id })
}
