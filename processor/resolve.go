package processor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/settle"
)

// ErrUnresolved is wrapped by Resolve's error when what became of a commit could not be learned before ctx ended. It may
// have landed, or may yet.
var ErrUnresolved = errors.New("processor: the outcome of the commit is unknown")

// ResolveOptions are options of Resolve. The zero value is good.
type ResolveOptions struct {
	// CommitTimeout is how long a commit is waited for before it is looked up; 0 means 30 s.
	CommitTimeout time.Duration
	// Tag is the transaction tag.
	Tag string
}

// Resolve runs a read-write transaction of the caller's own until it is known what became of it, also when the commit's
// answer is lost: the way the processor settles its messages, for transactions that acknowledge none. It returns nil when
// the transaction has committed, and f's error, or the database's refusal, when nothing was kept.
//
// When the outcome is unknown Resolve asks landed, on a context of its own, whether the effect is there, and if it is not
// runs f again. That is safe only if two commits of f cannot both land, since the first may land after the question was
// answered: f must assert what it changes, by inserting a key that is unique to this call, say, or by comparing a version
// that it then moves on. A key that is made once before the call and looked up by landed serves both.
//
// Resolve blocks until then, or until ctx ends; give it a ctx that outlives the request which asked for the work. When ctx
// ends first the error wraps ErrUnresolved if a commit may have landed. Between its questions and runs it pauses, longer and
// longer, up to 5 s. Options that make no sense are refused with an error that wraps ErrInvalid, before anything is run.
func Resolve(ctx context.Context, client *spanner.Client, f func(context.Context, *spanner.ReadWriteTransaction) error,
	landed func(context.Context) (bool, error), o ResolveOptions) error {
	if o.CommitTimeout == 0 {
		o.CommitTimeout = defaultCommitTimeout
	}
	if client == nil || f == nil || landed == nil {
		return fmt.Errorf("%w: Resolve needs a client, a function, and one that asks whether it has landed", ErrInvalid)
	}
	if o.CommitTimeout < 0 {
		return fmt.Errorf("%w: ResolveOptions.CommitTimeout is %v, it must not be negative", ErrInvalid, o.CommitTimeout)
	}
	open := false // a commit may have landed
	var pauses settle.Pauses
	for {
		sent, sentBefore, err := commitOnce(ctx, client, f, o)
		if err == nil {
			return nil
		}
		open = open || sentBefore || (sent && settle.MayHaveLanded(err))
		if !open {
			return err
		}
		yes, probeErr := ask(ctx, landed, &pauses)
		switch {
		case probeErr != nil:
			return fmt.Errorf("%w: %w", ErrUnresolved, errors.Join(err, probeErr))
		case yes:
			return nil
		case !sent || !settle.MayHaveLanded(err):
			return err // it has not landed, and the last word was a refusal
		}
		if !pauses.Wait(ctx, err, time.Time{}) {
			return fmt.Errorf("%w: %w", ErrUnresolved, err)
		}
	}
}

// commitOnce runs the transaction as Google's client does. sent says that the last run came to a commit, sentBefore that
// an earlier one did.
func commitOnce(ctx context.Context, client *spanner.Client, f func(context.Context, *spanner.ReadWriteTransaction) error,
	o ResolveOptions) (sent, sentBefore bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var timer *time.Timer
	_, err = client.ReadWriteTransactionWithOptions(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		if timer != nil {
			timer.Stop()
		}
		sentBefore = sentBefore || sent
		sent = false
		if err := f(ctx, tx); err != nil {
			return err
		}
		sent = true
		timer = time.AfterFunc(o.CommitTimeout, cancel)
		return nil
	}, spanner.TransactionOptions{TransactionTag: o.Tag})
	if timer != nil {
		timer.Stop()
	}
	return sent, sentBefore, err
}

// ask asks until it is answered, or ctx ends.
func ask(ctx context.Context, landed func(context.Context) (bool, error), pauses *settle.Pauses) (bool, error) {
	for {
		one, cancel := context.WithTimeout(ctx, 10*time.Second)
		yes, err := landed(one)
		cancel()
		if err == nil || !pauses.Wait(ctx, err, time.Time{}) {
			return yes, err
		}
	}
}

// pauseUpTo waits for a random part of d and reports false if ctx ended first.
func pauseUpTo(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(rand.N(d))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
