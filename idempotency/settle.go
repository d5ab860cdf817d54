package idempotency

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"cloud.google.com/go/spanner"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/internal/txstate"
)

const (
	// maxRuns bounds the transactions that one call makes for one change when
	// their outcomes stay unknown.
	maxRuns = 4
	// lookTimeout bounds the search for what became of a commit, and a release.
	lookTimeout = 10 * time.Second
	// rerunWait is the longest wait before the second, doubled for each more.
	rerunWait = 50 * time.Millisecond
)

// change is one change of a record that has to be known to have landed.
type change struct {
	op      Operation
	tag     string
	timeout time.Duration // of one run of apply; zero: none
	// apply makes the change in a transaction. It may run several times, and
	// must find out by itself whether an earlier run has landed.
	apply txFunc
	// landed says of the record, as a read outside of any transaction shows
	// it, whether the change is in it. An error says that it is not, and that
	// trying again is of no use.
	landed func(r *record, now time.Time) (bool, error)
}

// settle applies c once. Any error but Aborted in place of Commit's answer
// means that the commit may have landed, so settle looks at the record, on a
// context of its own. If the change is not there, the commit may still be on
// its way, so settle runs the guarded transaction again: whichever lands first,
// the other finds it. It gives up after maxRuns, or when ctx has ended, with
// ErrUnresolved. It returns the commit timestamp, or zero if that is not known.
func (s *Store) settle(ctx context.Context, c change) (time.Time, error) {
	for run := 1; ; run++ {
		end := s.transact(ctx, c.tag, c.timeout, c.apply)
		if !end.asked {
			return end.at, end.err
		}
		r, now, err := s.lookAgain(ctx, c.op)
		if err != nil {
			return time.Time{}, fmt.Errorf("%w: %v: %w (%w)", ErrUnresolved, c.op, end.err, err)
		}
		if landed, err := c.landed(r, now); landed || err != nil {
			return time.Time{}, err
		}
		if !mayRunAgain(end.err, run) {
			return time.Time{}, end.err
		}
		if run == maxRuns || wait(ctx, run) != nil {
			return time.Time{}, fmt.Errorf("%w: %v: %w", ErrUnresolved, c.op, end.err)
		}
	}
}

// lookAgain reads the record on a context of its own: the one that has ended
// may be the reason why the outcome is not known.
func (s *Store) lookAgain(ctx context.Context, op Operation) (*record, time.Time, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
	defer cancel()
	return s.look(ctx, op)
}

// mayRunAgain says whether a commit that ended with err, and is not to be seen
// in the database, calls for another run. The codes are those with which a
// commit that landed was seen to end.
func mayRunAgain(err error, run int) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	switch spanner.ErrCode(err) {
	case codes.Internal:
		return !txstate.NeverSent(err)
	case codes.DeadlineExceeded, codes.Canceled, codes.Unavailable, codes.Unknown:
		return true
	case codes.NotFound:
		// Either the server has forgotten the transaction, or a write of the
		// effect names a row that is not there. The code does not tell; a second
		// NotFound does.
		return run == 1
	default:
		return false
	}
}

// sending tells from when on a lease may be trusted.
type sending struct{ first, last time.Time }

// run is called when a run of the transaction begins.
func (s *sending) run() {
	s.last = time.Now()
	if s.first.IsZero() {
		s.first = s.last
	}
}

// landed is when the run was sent that landed, or earlier. The commit whose
// answer came, at the time at, was that of the last run. Without an answer it
// may have been any.
func (s *sending) landed(at time.Time) time.Time {
	if at.IsZero() {
		return s.first
	}
	return s.last
}

func wait(ctx context.Context, run int) error {
	longest := rerunWait << (run - 1)
	t := time.NewTimer(longest/2 + rand.N(longest/2))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
