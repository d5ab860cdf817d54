package deadletter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/settle"
	"google.golang.org/grpc/codes"
)

// timeouts bound what nobody else bounds.
type timeouts struct {
	commit  time.Duration // how long a commit is waited for before its outcome counts as unknown
	resolve time.Duration // the search for an unknown outcome, and how long aborts are put up with
	detach  time.Duration // what is still asked after the caller's context has ended
}

var defaultTimeouts = timeouts{commit: 30 * time.Second, resolve: time.Minute, detach: 5 * time.Second}

// Redrive sends the letter's message again, due now, and removes the letter, in one transaction. When the key is in the
// queue the error has the code AlreadyExists, and the letter is kept.
func (s *Store) Redrive(ctx context.Context, id ID) error {
	return s.settle(ctx, id, "redrive", func(l Letter) ([]*spanner.Mutation, error) {
		m, err := s.queue.Check(backend.Outgoing{Key: l.Key, Payload: l.Payload, Priority: l.Priority})
		if err != nil {
			return nil, fmt.Errorf("the letter holds what the queue does not take: %w", err)
		}
		send, err := s.queue.SendMutation(m)
		return []*spanner.Mutation{send}, err
	})
}

// Discard removes the letter.
func (s *Store) Discard(ctx context.Context, id ID) error {
	return s.settle(ctx, id, "discard", func(Letter) ([]*spanner.Mutation, error) { return nil, nil })
}

// outcome is what one try has come to.
type outcome int

const (
	failed   outcome = iota // nothing was kept
	aborted                 // nothing was kept, by the database's choice
	refused                 // nothing was kept, and trying again will not help
	unknown                 // a commit was sent and may land
	finished                // a commit was answered
)

// settle runs the transaction until its outcome is known. When ctx ends while a commit is out, it asks once more what
// became of it, for a few seconds at most.
func (s *Store) settle(ctx context.Context, id ID, verb string, write func(Letter) ([]*spanner.Mutation, error)) error {
	began := time.Now()
	var giveUp time.Time // when to stop asking; zero while no outcome is unknown
	var pauses settle.Pauses
	for {
		o, err := s.try(ctx, id, verb, write)
		if o == finished || errors.Is(err, ErrGone) && !giveUp.IsZero() {
			return nil // gone is what a commit of ours made of it, as far as can be known
		}
		if o == unknown && giveUp.IsZero() {
			giveUp = time.Now().Add(s.timeouts.resolve)
		}
		switch {
		case o == refused, o == failed && giveUp.IsZero(), o == aborted && time.Since(began) > s.timeouts.resolve:
			return s.explain(err)
		case !giveUp.IsZero() && (time.Now().After(giveUp) || ctx.Err() != nil):
			return s.lastLook(ctx, id, err)
		}
		if !wait(ctx, err, &pauses) {
			if giveUp.IsZero() {
				return err
			}
			return s.lastLook(ctx, id, err)
		}
	}
}

// try runs the transaction once.
func (s *Store) try(ctx context.Context, id ID, verb string, write func(Letter) ([]*spanner.Mutation, error)) (outcome, error) {
	options := backend.TxOptions{Tag: verb + "=" + s.queue.Definition().Name}.Transaction()
	tx, err := spanner.NewReadWriteStmtBasedTransactionWithOptions(ctx, s.client, options)
	if err != nil {
		return failed, err
	}
	if o, err := s.prepare(ctx, tx, id, write); err != nil {
		rollbackCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeouts.detach)
		defer cancel()
		tx.Rollback(rollbackCtx)
		return o, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeouts.commit)
	defer cancel()
	_, err = tx.Commit(ctx)
	switch code := spanner.ErrCode(err); {
	case err == nil:
		return finished, nil
	case code == codes.Aborted:
		return aborted, err
	case settle.MayHaveLanded(err):
		return unknown, err
	}
	return refused, err
}

// prepare does all but the commit.
func (s *Store) prepare(ctx context.Context, tx *spanner.ReadWriteStmtBasedTransaction, id ID, write func(Letter) ([]*spanner.Mutation, error)) (outcome, error) {
	letter, err := s.read(ctx, tx, id, backend.Exclusive())
	if spanner.ErrCode(err) == codes.Aborted {
		return aborted, err
	}
	if err != nil {
		return failed, err
	}
	mutations, err := write(letter)
	if err != nil {
		return refused, err
	}
	key := append(id.Key[:len(id.Key):len(id.Key)], id.DeadAt)
	return failed, tx.BufferWrite(append(mutations, spanner.Delete(s.table, key)))
}

// lastLook says what became of a commit whose outcome is unknown, when there is no time for more.
func (s *Store) lastLook(ctx context.Context, id ID, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeouts.detach)
	defer cancel()
	if _, err := s.Get(ctx, id); errors.Is(err, ErrGone) {
		return nil
	}
	return fmt.Errorf("the commit's answer was lost, and it may still land: %w", cause)
}

// wait pauses before the next try, for as long as the database says if it says so, and reports false if ctx ended first.
func wait(ctx context.Context, err error, pauses *settle.Pauses) bool {
	d, told := spanner.ExtractRetryDelay(err)
	if !told {
		return pauses.Wait(ctx, err, time.Time{})
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
