package txn

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/emulator/front/internal/backend"
	"github.com/spanqueue/spanqueue/emulator/front/internal/ident"
	"github.com/spanqueue/spanqueue/emulator/front/internal/turn"
)

// Txn is a transaction that a client can name. Its methods are safe for concurrent use: clients send the RPCs of one
// transaction at the same time.
type Txn struct {
	Database    string
	Partitioned bool // partitioned DML rather than read-write

	m       *Manager
	id      ident.ReadWrite
	session uint64 // hash of the client's session
	options *spannerpb.TransactionOptions
	tokens  atomic.Int32 // pre-commit tokens given out

	// One at a time: who opens the transaction in the emulator, and who commits it. They are channels so that who
	// waits for them can leave.
	opening    chan struct{}
	committing chan struct{}

	gone chan struct{} // closed when the transaction ends

	mu      sync.Mutex
	state   State
	cause   error // in Failed and Aborted
	commit  *spannerpb.CommitResponse
	tx      *backend.Tx // from Active on, until nothing uses it any more
	turn    *turn.Turn
	working int  // RPCs under way
	tidied  bool // ended, and tx with it
	keep    bool // tx could not be ended: its session does not go back
	last    bool // the last statement was executed
	tag     string
	touched map[string]struct{}
	client  *Client
	used    time.Time // when an RPC last began or ended
}

// ID is the transaction's id for clients.
func (t *Txn) ID() []byte { return t.id.ID() }

// State is where the transaction stands now.
func (t *Txn) State() State {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state
}

// NextToken is the number of the next pre-commit token, from 1.
func (t *Txn) NextToken() int32 { return t.tokens.Add(1) }

// Run runs f, which makes one call in the transaction of the emulator, once the database's turn has come. last says
// that the call, if it succeeds, is the transaction's last statement. An ABORTED of f ends the transaction.
func (t *Txn) Run(ctx context.Context, last bool, f func(ctx context.Context, tx *backend.Tx) error) error {
	tx, leave, err := t.enter(ctx, statementAnswer)
	if err != nil {
		return err
	}
	defer leave()
	if t.isLast() {
		return errLast
	}
	err = f(ctx, tx)
	switch {
	case err == nil && t.Partitioned:
		t.finish(ctx, Spent, nil)
	case err != nil && t.Partitioned:
		t.reopen(ctx)
	case err == nil && last:
		t.setLast()
	case status.Code(err) == codes.Aborted:
		t.finish(ctx, Aborted, withRetryInfo(err))
	}
	if err != nil {
		return t.sawEnd(err)
	}
	return nil
}

// Commit runs f, which commits the transaction of the emulator, and remembers what came of it: a second Commit waits
// for the first and gets the same. f's context does not end with ctx: what was sent is waited for.
func (t *Txn) Commit(ctx context.Context, mutations bool, f func(ctx context.Context, tx *backend.Tx) (*spannerpb.CommitResponse, error)) (*spannerpb.CommitResponse, error) {
	if err := acquire(ctx, t.committing); err != nil {
		return nil, err
	}
	defer func() { <-t.committing }()
	if r := t.committed(); r != nil {
		return r, nil
	}
	if mutations && t.isLast() {
		return nil, errLast
	}
	if t.Partitioned {
		return nil, ErrNotReadWrite
	}
	tx, leave, err := t.enter(ctx, commitAnswer)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := t.beginCommit(); err != nil {
		return nil, err
	}
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	r, err := f(detached, tx)
	t.endCommit(ctx, r, err)
	if status.Code(err) == codes.Aborted {
		err = withRetryInfo(err)
	}
	return r, err
}

// Rollback ends the transaction for its client. It waits for a Commit that is under way.
func (t *Txn) Rollback(ctx context.Context) error {
	for !t.finish(ctx, RolledBack, nil) {
		if err := acquire(ctx, t.committing); err != nil {
			return err
		}
		<-t.committing
	}
	return rollbackAnswer(t.State())
}

// Abort ends the transaction for a reason of the front's: what is sent to it later is answered ABORTED. A Commit that
// is under way decides for itself.
func (t *Txn) Abort(ctx context.Context, why string) { t.finish(ctx, Aborted, ErrAborted(why)) }

func (t *Txn) isLast() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

func (t *Txn) setLast() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = true
}

func acquire(ctx context.Context, sem chan struct{}) error {
	select {
	case sem <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fromContext(ctx.Err())
	}
}
