package txn

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"hash/fnv"
	"sync"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"

	"github.com/spanqueue/spanqueue/emulator/front/internal/backend"
	"github.com/spanqueue/spanqueue/emulator/front/internal/ident"
	"github.com/spanqueue/spanqueue/emulator/front/internal/turn"
)

// Pool is where transactions get theirs of the emulator; *backend.Pool is one. Its calls are not given up when a
// client's context ends.
type Pool interface {
	// Begin begins a transaction of the emulator, on a session of its own. No lock is taken by that.
	Begin(ctx context.Context, database string, o *spannerpb.TransactionOptions) (*backend.Tx, error)
	// EndTx rolls it back. After an error the pool sees to it, and its session must not be given back.
	EndTx(ctx context.Context, tx *backend.Tx) error
	// Rollback is EndTx, and Give if that went well.
	Rollback(ctx context.Context, tx *backend.Tx)
	// Holds reports whether the emulator still has tx; it may have been restarted. The error is the emulator's.
	Holds(ctx context.Context, tx *backend.Tx) (bool, error)
	// Supersede ends a partitioned DML transaction whose statement failed, and gives its session back.
	Supersede(ctx context.Context, tx *backend.Tx)
	// Give gives a session back that has no open transaction.
	Give(s *backend.Session)
}

// Manager has the transactions of a front. Make it with NewManager; Close it.
type Manager struct {
	pool        Pool
	front       uint64 // tells this front's transactions from those of one before it
	idleBound   time.Duration
	closedBound time.Duration
	running     sync.WaitGroup // what timers have started

	mu     sync.Mutex
	closed bool
	next   uint64
	live   map[uint64]*Txn
	lines  map[string]*turn.Line
	memory memory
}

// NewManager makes a Manager. An owner of a turn may idle for idleBound while others wait; a transaction outlives its
// client's connection by closedBound.
func NewManager(pool Pool, idleBound, closedBound time.Duration) *Manager {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return &Manager{
		pool:        pool,
		front:       binary.BigEndian.Uint64(b[:]),
		idleBound:   idleBound,
		closedBound: closedBound,
		live:        make(map[uint64]*Txn),
		lines:       make(map[string]*turn.Line),
	}
}

// Begin makes a transaction of the client's session. Nothing of it is in the emulator until its first Run or Commit.
func (m *Manager) Begin(session string, o *spannerpb.TransactionOptions) *Txn {
	t := m.make(session)
	t.options = o
	_, t.Partitioned = o.GetMode().(*spannerpb.TransactionOptions_PartitionedDml_)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next++
	t.id = ident.ReadWrite{Front: m.front, Number: m.next}
	m.live[m.next] = t
	return t
}

func (m *Manager) make(session string) *Txn {
	return &Txn{
		Database:   ident.DatabaseOf(session),
		m:          m,
		session:    hash(session),
		opening:    make(chan struct{}, 1),
		committing: make(chan struct{}, 1),
		gone:       make(chan struct{}),
		used:       time.Now(),
	}
}

// Find gives the transaction with that id on the session. One that ended, or that this front does not remember, comes
// back as what answers its RPCs. The error is NOT_FOUND, for ids that are not the session's, or not of a front.
func (m *Manager) Find(session string, id ident.ReadWrite) (*Txn, error) {
	if id.Front != m.front {
		return m.unknown(session, id), nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.live[id.Number]; t != nil {
		if t.session != hash(session) {
			return nil, ErrNotFound(id.ID())
		}
		return t, nil
	}
	r := m.memory.find(id.Number)
	if r == nil {
		return m.unknown(session, id), nil
	}
	if r.session != hash(session) {
		return nil, ErrNotFound(id.ID())
	}
	t := m.make(session)
	t.id = id
	r.restore(t)
	return t, nil
}

// unknown is a transaction that a front began, and forgot: it may have been restarted.
func (m *Manager) unknown(session string, id ident.ReadWrite) *Txn {
	t := m.make(session)
	t.id, t.state, t.cause = id, Aborted, ErrAborted("The transaction is not known any more.")
	return t
}

// retire moves a transaction that has ended from the live ones to the memory.
func (m *Manager) retire(t *Txn) {
	r := t.record()
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.live, t.id.Number)
	m.memory.add(t.id.Number, r)
}

// Forget makes a transaction that ended unknown, as if it had never been: its RPCs are answered NOT_FOUND.
func (m *Manager) Forget(id ident.ReadWrite) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.memory.find(id.Number); r != nil && id.Front == m.front {
		r.state = Forgotten
	}
}

// Line is the line before the database.
func (m *Manager) line(database string) *turn.Line {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.lines[database]
	if l == nil {
		l = turn.NewLine(m.idleBound)
		m.lines[database] = l
	}
	return l
}

// InTurn runs f when the database's turn has come.
func (m *Manager) InTurn(ctx context.Context, database string, f func(ctx context.Context) error) error {
	t, err := m.line(database).Wait(ctx, nil, func() {})
	if err != nil {
		return fromContext(err)
	}
	defer t.Done()
	return f(ctx)
}

// join lets something that a timer started run; it is false once the Manager is closed. Who got true says
// running.Done.
func (m *Manager) join() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.running.Add(1)
	return true
}

func hash(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	return h.Sum64()
}
