package settle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spanqueue/spanqueue/internal/backend"
)

// ofBody marks an error as the body's, which comes after the acknowledgement.
type ofBody struct{ err error }

func (b ofBody) Error() string { return b.err.Error() }

func bodyError(err error) error {
	if err == nil {
		return nil
	}
	return ofBody{err}
}

// bounds are those of one call of runTx.
type bounds struct {
	runs    int           // how many there may be
	runTime time.Duration // how long they may take together before another one is begun; 0: no bound
	commit  time.Duration // how long a commit is waited for
}

// runTx runs one transaction as Google's client does: again after an abort, and after some lost answers to Commit. It notes
// in t what the runs did. f acknowledges and then calls the body, whose error it marks.
func runTx(ctx context.Context, q backend.Queue, tag string, b bounds, t *try, f func(context.Context, backend.Tx) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var timer *time.Timer
	defer func() {
		if timer != nil {
			timer.Stop()
		}
	}()
	began := time.Now()
	return q.RunTx(ctx, backend.TxOptions{Tag: tag}, func(ctx context.Context, tx backend.Tx) error {
		if timer != nil {
			timer.Stop() // the commit of the run before was answered
		}
		t.sentBefore = t.sentBefore || t.sent
		t.runs++
		t.bodyErr, t.missed, t.sent = nil, false, false
		if t.runs > b.runs || t.runs > 1 && b.runTime > 0 && time.Since(began) > b.runTime {
			return errTooManyAborts
		}
		err := f(ctx, tx)
		var body ofBody
		switch {
		case err == nil:
			t.sent = true
			timer = time.AfterFunc(b.commit, func() { cancel(errCommitTimeout) })
			return nil
		case !errors.As(err, &body):
			return err
		case abortedByServer(ctx, tx):
			return abortedError(body.err)
		case context.Cause(ctx) == errCommitTimeout:
			t.sent = true // the run before was not answered in time, and this one began as the timer went off
			return body.err
		}
		t.bodyErr = body.err
		return errBody
	})
}

// acknowledging returns the context of an acknowledgement.
func acknowledging(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, errAckTimeout)
}

// why adds to an acknowledgement's error that it was not waited for any longer. The error stays what it is for Google's
// client, which runs the function again when it was an inline begin that failed.
func why(acking context.Context, err error) error {
	if context.Cause(acking) == errAckTimeout {
		return fmt.Errorf("%w (%w)", err, errAckTimeout)
	}
	return err
}
