package backend

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
)

// Session is a session of the emulator, owned by whoever took it from the pool.
type Session struct {
	Name     string
	Database string

	created time.Time // by the emulator's clock
	epoch   epoch     // guarded by the Pool's mu
	lastUse time.Time
}

// Pool has the free sessions of every database. Its methods are safe for concurrent use.
type Pool struct {
	client spannerpb.SpannerClient
	logger *slog.Logger

	mu         sync.Mutex
	free       map[string][]*Session // by database, the latest used last; of the present epoch
	stuck      []*Tx                 // could not be rolled back
	connection uint64                // counts the connections
	dropped    map[string]uint64     // how often each database was dropped
}

// NewPool makes an empty pool.
func NewPool(client spannerpb.SpannerClient, logger *slog.Logger) *Pool {
	return &Pool{client: client, logger: logger, free: make(map[string][]*Session), dropped: make(map[string]uint64)}
}

// Client makes calls on sessions taken from the pool.
func (p *Pool) Client() spannerpb.SpannerClient { return p.client }

// Take gives a session of the database, a new one if none is free.
func (p *Pool) Take(ctx context.Context, database string) (*Session, error) {
	if s := p.pop(database); s != nil {
		return s, nil
	}
	return p.Create(ctx, database, nil)
}

// Create makes a new session; template may be nil.
func (p *Pool) Create(ctx context.Context, database string, template *spannerpb.Session) (*Session, error) {
	before := p.now(database)
	s, err := p.client.CreateSession(ctx, &spannerpb.CreateSessionRequest{Database: database, Session: template})
	if err != nil {
		return nil, err
	}
	return &Session{Name: s.GetName(), Database: database, created: s.GetCreateTime().AsTime(), epoch: before}, nil
}

// Give puts a session into the pool, or forgets it if it is of an epoch that has passed. It must have no open
// transaction.
func (p *Pool) Give(s *Session) {
	s.lastUse = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.epoch == p.nowLocked(s.Database) {
		p.free[s.Database] = append(p.free[s.Database], s)
	}
}

// With runs f with a session of the database, and once more with a new session if the emulator does not know the
// first one. f must not leave a transaction open.
func (p *Pool) With(ctx context.Context, database string, f func(session string) error) error {
	s, err := p.Take(ctx, database)
	if err != nil {
		return err
	}
	err = f(s.Name)
	if unknownSession(err) {
		p.Drop(database)
		if s, err = p.Create(ctx, database, nil); err != nil {
			return err
		}
		err = f(s.Name)
	}
	p.Give(s)
	return err
}

func (p *Pool) pop(database string) *Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	free := p.free[database]
	if len(free) == 0 {
		return nil
	}
	s := free[len(free)-1]
	free[len(free)-1] = nil
	p.free[database] = free[:len(free)-1]
	return s
}
