package backend

import (
	"context"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The emulator numbers its sessions and transactions from the beginning in every database and after every start: a name
// that was kept from before is soon somebody else's. So each session has the epoch that it was made in, and a new one
// begins with each connection, and with each database that is dropped.

// epoch is when a session was made.
type epoch struct {
	connection uint64
	database   uint64
}

// Connecting says that the connection to the emulator is about to be made anew: what answers may be another emulator.
// It must be said before anything is sent on it.
func (p *Pool) Connecting() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.connection++
	clear(p.free)
}

// Drop forgets the sessions of a database that is gone, also those that are in use.
func (p *Pool) Drop(database string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropped[database]++
	delete(p.free, database)
}

func (p *Pool) nowLocked(database string) epoch { return epoch{p.connection, p.dropped[database]} }

func (p *Pool) now(database string) epoch {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nowLocked(database)
}

// Holds reports whether the emulator still has the transaction's session, and not another of the same name. It asks the
// emulator only if an epoch has begun since the session was made. A transaction of which it is false must not be used:
// it was lost with its emulator.
func (p *Pool) Holds(ctx context.Context, t *Tx) (bool, error) {
	s := t.Session
	p.mu.Lock()
	now := p.nowLocked(s.Database)
	same := s.epoch == now
	p.mu.Unlock()
	if same {
		return true, nil
	}
	got, err := p.client.GetSession(ctx, &spannerpb.GetSessionRequest{Name: s.Name})
	switch {
	case status.Code(err) == codes.NotFound:
		return false, nil
	case err != nil:
		return false, err
	case !got.GetCreateTime().AsTime().Equal(s.created):
		return false, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.epoch = now
	return true, nil
}
