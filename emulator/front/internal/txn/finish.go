package txn

import (
	"context"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// commitTimeout bounds a commit that the emulator does not answer.
const commitTimeout = time.Minute

// finish ends the transaction: in the emulator first, then the turn goes to the next. It is false, and nothing is
// done, while a Commit is under way. A transaction that has ended stays as it is.
func (t *Txn) finish(ctx context.Context, to State, cause error) bool {
	t.mu.Lock()
	if t.state == Committing {
		t.mu.Unlock()
		return false
	}
	t.finishLocked(ctx, to, cause)
	return true
}

// finishLocked is finish whoever commits. It unlocks.
func (t *Txn) finishLocked(ctx context.Context, to State, cause error) {
	if t.state.ended() {
		t.mu.Unlock()
		return
	}
	t.state, t.cause = to, cause
	tx, mine := t.tx, t.turn
	t.turn = nil
	close(t.gone)
	t.mu.Unlock()

	keep := false
	if tx != nil && to != Committed && to != Spent {
		keep = t.m.pool.EndTx(context.WithoutCancel(ctx), tx) != nil
	}
	if mine != nil {
		mine.Done()
	}
	t.mu.Lock()
	t.tidied, t.keep = true, keep
	free := t.giveLocked()
	client := t.client
	t.client = nil
	t.mu.Unlock()
	if free != nil {
		t.m.pool.Give(free.Session)
	}
	client.forget(t)
	t.m.retire(t)
}

// lost is called when the turn was taken from the transaction because it idled while others waited.
func (t *Txn) lost() {
	if !t.m.join() {
		return
	}
	defer t.m.running.Done()
	t.Abort(context.Background(), "The transaction was idle while others waited, and was ended.")
}

// reopen takes a partitioned DML transaction whose statement failed back to the beginning: the turn is free, and the
// client may try again.
func (t *Txn) reopen(ctx context.Context) {
	t.mu.Lock()
	tx, mine := t.tx, t.turn
	if t.state != Active || t.working > 1 {
		t.mu.Unlock()
		return
	}
	t.state, t.tx, t.turn = Begun, nil, nil
	t.mu.Unlock()
	t.m.pool.Supersede(ctx, tx)
	mine.Done()
}

// beginCommit moves on to Committing, unless the transaction ended since the RPC entered.
func (t *Txn) beginCommit() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state.ended() {
		return commitAnswer(t.state, t.ID(), t.cause)
	}
	t.state = Committing
	return nil
}

// endCommit remembers what came of a Commit.
func (t *Txn) endCommit(ctx context.Context, r *spannerpb.CommitResponse, err error) {
	t.mu.Lock()
	switch status.Code(err) {
	case codes.OK:
		t.commit = r
		t.finishLocked(ctx, Committed, nil)
	case codes.Aborted:
		t.finishLocked(ctx, Aborted, withRetryInfo(err))
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		// Nobody knows. The emulator does, if it is asked again: the next Commit goes there.
		t.state = Active
		t.mu.Unlock()
	default:
		t.finishLocked(ctx, Failed, err)
	}
}

func (t *Txn) committed() *spannerpb.CommitResponse {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != Committed {
		return nil
	}
	return t.commit
}

// sawEnd replaces the error of a call that failed because the transaction was ended meanwhile.
func (t *Txn) sawEnd(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == Aborted {
		return t.cause
	}
	return err
}
