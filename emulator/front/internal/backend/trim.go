package backend

import (
	"context"
	"maps"
	"slices"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
)

// Trim deletes the sessions that have been free for longer than idle, and tries again to roll back what is stuck.
func (p *Pool) Trim(ctx context.Context, idle time.Duration) {
	p.deleteOld(ctx, idle)
	p.RollBackStuck(ctx)
}

// RollBackStuck tries again to roll back what could not be. Until then the emulator lets nobody else write.
func (p *Pool) RollBackStuck(ctx context.Context) {
	p.mu.Lock()
	stuck := p.stuck
	p.stuck = nil
	p.mu.Unlock()
	for i, tx := range stuck {
		if p.rollback(ctx, tx) != nil { // the others would fare no better
			p.mu.Lock()
			p.stuck = append(p.stuck, stuck[i:]...)
			p.mu.Unlock()
			return
		}
		p.Give(tx.Session)
	}
}

func (p *Pool) deleteOld(ctx context.Context, idle time.Duration) {
	var old []*Session
	p.mu.Lock()
	for database, free := range p.free {
		// The latest used are last: the old ones are a prefix.
		n, _ := slices.BinarySearchFunc(free, idle, func(s *Session, d time.Duration) int {
			if time.Since(s.lastUse) > d {
				return -1
			}
			return 1
		})
		old = append(old, free[:n]...)
		if rest := free[n:]; len(rest) > 0 {
			p.free[database] = slices.Clone(rest)
		} else {
			delete(p.free, database)
		}
	}
	p.mu.Unlock()
	for _, s := range old {
		// A session that cannot be deleted is the emulator's to forget.
		_, _ = p.client.DeleteSession(ctx, &spannerpb.DeleteSessionRequest{Name: s.Name})
	}
}

// Free is how many sessions are free.
func (p *Pool) Free() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, free := range p.free {
		n += len(free)
	}
	return n
}

// Databases are those that the pool has free sessions of.
func (p *Pool) Databases() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.free))
}
