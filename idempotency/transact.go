package idempotency

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"cloud.google.com/go/spanner"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spanqueue/spanqueue/internal/txstate"
)

// errNothingToWrite is returned by a transaction function that has found all
// it wanted: its transaction is rolled back, which no commit of unknown
// outcome can come of.
var errNothingToWrite = errors.New("idempotency: nothing to write")

// errRolledBack leaves the transaction function in place of f's own error, so
// that the client finds no status in it for which it would run f again.
var errRolledBack = errors.New("idempotency: rolled back")

var (
	errHandlerTimeout = errors.New("idempotency: Config.HandlerTimeout has passed")
	errCommitTimeout  = errors.New("idempotency: no answer to Commit within Config.CommitTimeout")
)

// txFunc is a guarded transaction function: it first reads the record, and
// finds there whether an earlier run has landed.
type txFunc func(context.Context, *spanner.ReadWriteTransaction) error

// errUnread is in a txFunc's error when it did not come that far.
var errUnread = errors.New("idempotency: the record could not be read")

// ending is how a transaction ended: committed, or with nothing to write, if
// err is nil.
type ending struct {
	err error
	// at is the commit timestamp, zero if nothing was written.
	at time.Time
	// asked says that a Commit was sent, and that no later run of f has seen
	// what became of it: err came in its place, and the writes may have landed.
	asked bool
}

// transact runs f as one read-write transaction. The end of ctx ends f and the
// waits between its runs, but not a Commit that is on its way: only
// CommitTimeout ends that. So a caller who goes away does not turn a commit
// into one of unknown outcome. Each run of f has timeout, if it is not zero.
//
// A panic of f comes out of transact, after the rollback that the client alone
// would leave out; its stack is logged. runtime.Goexit cannot be caught: the
// transaction then stays open until the server ends it.
func (s *Store) transact(ctx context.Context, tag string, timeout time.Duration, f txFunc) ending {
	base, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	g := gate{cancel: cancel, bound: s.cfg.CommitTimeout}
	defer g.open()
	unlink := context.AfterFunc(ctx, func() { g.callerGone(context.Cause(ctx)) })
	defer unlink()

	var crashed *crash
	var own error
	var asked bool
	resp, err := s.client.ReadWriteTransactionWithOptions(base, func(base context.Context, tx *spanner.ReadWriteTransaction) error {
		g.open()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if timeout > 0 {
			var done context.CancelFunc
			base, done = context.WithTimeoutCause(base, timeout, errHandlerTimeout)
			defer done()
		}
		own = withCause(base, catch(&crashed, func() error { return f(base, tx) }))
		switch {
		case own == nil:
			asked = true
			g.close()
			return nil
		case aborted(tx, own):
			return abortedError(own)
		default:
			asked = asked && errors.Is(own, errUnread)
			return errRolledBack
		}
	}, TransactionOptions(spanner.TransactionOptions{TransactionTag: tag}))
	if crashed != nil {
		s.cfg.Logger.ErrorContext(ctx, "idempotency: panic in a transaction, which was rolled back",
			"panic", fmt.Sprint(crashed.value), "stack", string(crashed.stack))
		panic(crashed.value)
	}
	if errors.Is(err, errRolledBack) {
		err = own
	}
	if errors.Is(err, errNothingToWrite) {
		return ending{}
	}
	if err != nil {
		return ending{err: withCause(base, err), asked: asked}
	}
	return ending{at: resp.CommitTs.UTC()}
}

// aborted says whether own, the error of a txFunc, comes from the database's
// abort. Only the database's word counts: a function that makes up an ABORTED of
// its own would be run for ever, and one that has flattened the database's into
// a text would not be run again.
func aborted(tx *spanner.ReadWriteTransaction, own error) bool {
	switch {
	case errors.Is(own, errNothingToWrite):
		return false
	case errors.Is(own, errUnread):
		// Our own first statement. When it fails, the client makes an ABORTED
		// up to have the function run again without an inline begin.
		return spanner.ErrCode(own) == codes.Aborted
	default:
		return txstate.Aborted(tx)
	}
}

// abortedError makes the client run the function again: after as long as the
// database has said, if that is still in err.
func abortedError(err error) error {
	if spanner.ErrCode(err) == codes.Aborted {
		return err
	}
	return status.Error(codes.Aborted, "idempotency: the database aborted the transaction")
}

// withCause adds to err why ctx has ended: the client's own errors say only
// that it has.
func withCause(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if err == nil || cause == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", cause, err)
}

// gate keeps the end of the caller's context away from a Commit.
type gate struct {
	cancel context.CancelCauseFunc
	bound  time.Duration

	mu     sync.Mutex
	closed bool
	timer  *time.Timer
}

// close: Commit is about to be sent.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.timer = time.AfterFunc(g.bound, func() { g.cancel(errCommitTimeout) })
}

// open: the function runs, again if the last Commit was aborted.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = false
	if g.timer != nil {
		g.timer.Stop()
	}
}

func (g *gate) callerGone(cause error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.cancel(cause)
	}
}

// crash is a panic of f.
type crash struct {
	value any
	stack []byte
}

// errPanicked makes the client roll back. It says nothing of the panic's
// value: an error in it could make the client run f again.
var errPanicked = errors.New("idempotency: panic")

func catch(c **crash, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			*c, err = &crash{v, debug.Stack()}, errPanicked
		}
	}()
	return f()
}
