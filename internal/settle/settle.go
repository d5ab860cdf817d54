package settle

import (
	"context"
	"errors"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/txstate"
	"google.golang.org/grpc/codes"
)

// Tx is a guarded transaction. All fields must be set but those that say what 0 means.
type Tx struct {
	Queue    backend.Queue
	Delivery backend.Delivery
	// Tag becomes the transaction tag.
	Tag string
	// Body does what is to happen together with the acknowledgement, which has been done when it is called. It may be
	// called several times; each time what it wrote before is undone.
	Body func(context.Context, backend.Tx) error

	// MaxRuns bounds how often the database may make the transaction run in one go.
	MaxRuns int
	// RunTime bounds how long those runs may take together before another one is begun; 0 means no bound. A body that is
	// too slow for the database is aborted in every run.
	RunTime time.Duration
	// AckTimeout is how long the acknowledgement of a run is waited for, since Google's client waits for ever for some
	// answers; 0 means for as long as Run's context lasts.
	AckTimeout time.Duration
	// CommitTimeout is how long a commit is waited for before its outcome counts as unknown.
	CommitTimeout time.Duration
	// ResolveTimeout bounds the search for an unknown outcome, from the moment it became unknown.
	ResolveTimeout time.Duration
}

// Result is what became of a guarded transaction.
type Result int

const (
	// Committed: the commit was answered.
	Committed Result = iota
	// Settled: a commit's answer was lost, and the delivery is gone from the queue: by that commit or by another holder.
	Settled
	// NotHeld: the delivery was gone before a commit was sent.
	NotHeld
	// BodyFailed: the body returned an error. Nothing was kept.
	BodyFailed
	// Refused: the database refused the commit for what the body wrote. Nothing was kept.
	Refused
	// AbortedTooOften: the database aborted the transaction MaxRuns times, or for RunTime. Nothing was kept.
	AbortedTooOften
	// Unreachable: the database did not answer before a commit was sent. Nothing was kept.
	Unreachable
	// Unresolved: a commit's answer was lost, and what became of it could not be learned. It may still land.
	Unresolved
)

// Verdict says what became of a guarded transaction, and what it took.
type Verdict struct {
	Result Result
	// Err says why; it is nil for Committed and Settled, and the body's own error for BodyFailed.
	Err error
	// Runs counts how often the function ran, Aborts how often that was because nothing of the run before was kept: the
	// database had aborted it, nearly always, or a commit got lost on its way in a manner that Google's client takes as such.
	Runs, Aborts int
	// Unknown counts the commits whose outcome was unknown at first.
	Unknown int
}

var (
	// errBody leaves the transaction function in place of the body's own error, so that Google's client finds no status
	// in it to run the function again for.
	errBody          = errors.New("spanqueue: rolled back")
	errTooManyAborts = errors.New("spanqueue: the database aborted the transaction too often")
	errAckTimeout    = errors.New("spanqueue: the acknowledgement was not answered in time")
	errCommitTimeout = errors.New("spanqueue: the commit was not answered in time")
)

// Run runs the transaction, and again while that is safe and needed. It blocks until the outcome is known or cannot be
// learned within the bounds; ctx should outlive a stop of the program's loop.
func (x *Tx) Run(ctx context.Context) Verdict {
	var v Verdict
	var giveUp time.Time // when to stop asking; set once an outcome is unknown
	var pauses Pauses
	for {
		t := x.once(ctx)
		v.Runs += t.runs
		v.Aborts += t.aborts(true)
		if r, known := t.result(v.Unknown > 0); known {
			v.Result, v.Err = r, t.err
			switch r {
			case Settled:
				// The guard itself has answered: the delivery was there when a commit of ours was sent, and is gone.
				v.Err = nil
				if t.sentBefore {
					v.Unknown++
				}
			case BodyFailed:
				v.Err = t.bodyErr
			}
			return v
		}

		// The outcome of a commit, of this call or of an earlier one, is unknown.
		if t.sent {
			v.Unknown++
		}
		if giveUp.IsZero() {
			giveUp = time.Now().Add(x.ResolveTimeout)
		}
		presence, err := x.probe(ctx, giveUp, &pauses)
		switch {
		case err != nil:
			v.Result, v.Err = Unresolved, errors.Join(t.err, err)
			return v
		case presence != backend.Present:
			v.Result, v.Err = Settled, nil
			return v
		case t.sent && !MayHaveLanded(t.err):
			v.Result, v.Err = Refused, t.err
			return v
		case !pauses.Wait(ctx, t.err, giveUp):
			v.Result, v.Err = Unresolved, t.err
			return v
		}
		// The commit had not landed when the probe was answered. It may land yet: run again, and let the guard decide.
	}
}

// try is one call of RunTx. What it says of a run is of the last one.
type try struct {
	runs    int
	missed  bool  // the ack found nothing
	bodyErr error // what the body returned
	sent    bool  // the function returned nil: a commit was sent
	// sentBefore: an earlier run's commit was sent. When the client runs the function again after it, the commit was
	// aborted, or its answer was lost.
	sentBefore bool
	err        error
}

// result reads the outcome from a try, if it shows one. unknownBefore says that a commit of an earlier try may have landed.
func (t try) result(unknownBefore bool) (Result, bool) {
	switch {
	case t.err == nil:
		return Committed, true
	case t.missed && (t.sentBefore || unknownBefore):
		return Settled, true
	case t.missed:
		return NotHeld, true
	case t.bodyErr != nil:
		return BodyFailed, true
	case errors.Is(t.err, errTooManyAborts):
		return AbortedTooOften, true
	case !t.sent && !t.sentBefore && !unknownBefore:
		return Unreachable, true
	}
	return Unresolved, false
}

// aborts returns how often the function ran again because nothing of a run was kept. Two other reasons are seen by the
// acknowledgement that misses: the commit of the run before has landed, and its answer was one after which Google's client
// runs the function again; and, where that begins the transaction, the miss itself, which makes the client begin anew.
func (t try) aborts(missBeginsAnew bool) int {
	n := t.runs - 1
	if t.missed && t.sentBefore {
		n--
	}
	if t.missed && missBeginsAnew {
		n--
	}
	return max(0, n)
}

func (x *Tx) once(ctx context.Context) try {
	var t try
	t.err = runTx(ctx, x.Queue, x.Tag, bounds{x.MaxRuns, x.RunTime, x.CommitTimeout}, &t, func(ctx context.Context, tx backend.Tx) error {
		acking, cancel := acknowledging(ctx, x.AckTimeout)
		defer cancel()
		if err := tx.Ack(acking, x.Delivery); err != nil {
			t.missed = errors.Is(err, backend.ErrNotHeld)
			return why(acking, err)
		}
		return bodyError(x.Body(ctx, tx))
	})
	return t
}

// MayHaveLanded says whether a commit that was answered with this error may have landed, or may yet. Any other code is
// the database's refusal of what was written.
func MayHaveLanded(err error) bool {
	switch spanner.ErrCode(err) {
	case codes.DeadlineExceeded, codes.Canceled, codes.Unavailable, codes.Unknown, codes.Aborted, codes.ResourceExhausted:
		return true
	case codes.Internal:
		return !txstate.NeverSent(err)
	case codes.NotFound:
		return isTransactionNotFound(err)
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
