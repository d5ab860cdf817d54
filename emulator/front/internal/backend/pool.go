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

	lastUse time.Time
}

// Pool has the free sessions of every database. Its methods are safe for concurrent use.
type Pool struct {
	client spannerpb.SpannerClient
	logger *slog.Logger

	mu    sync.Mutex
	free  map[string][]*Session // by database, the latest used last
	stuck []*Tx                 // could not be rolled back
}

// NewPool makes an empty pool.
func NewPool(client spannerpb.SpannerClient, logger *slog.Logger) *Pool {
	return &Pool{client: client, logger: logger, free: make(map[string][]*Session)}
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
	s, err := p.client.CreateSession(ctx, &spannerpb.CreateSessionRequest{Database: database, Session: template})
	if err != nil {
		return nil, err
	}
	return &Session{Name: s.GetName(), Database: database}, nil
}

// Give puts a session into the pool. It must have no open transaction.
func (p *Pool) Give(s *Session) {
	s.lastUse = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free[s.Database] = append(p.free[s.Database], s)
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

// Drop forgets the free sessions of a database that is gone.
func (p *Pool) Drop(database string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.free, database)
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
