package idempotency

import (
	"errors"
	"fmt"
	"time"
)

// Errors that may come wrapped: compare with errors.Is.
var (
	// ErrInvalid: the call cannot be right, whatever the database holds.
	ErrInvalid = errors.New("idempotency: invalid")
	// ErrMismatch: the key was used before with another fingerprint. Nothing
	// was done and the old result is not shown. Asking again does not help.
	ErrMismatch = errors.New("idempotency: the key belongs to another request")
	// ErrInProgress: another call owns the operation. RetryAfter says when to
	// ask again.
	ErrInProgress = errors.New("idempotency: the operation is in progress")
	// ErrUncertain: it is not known what became of an outside call, and nothing
	// may be done before that is reconciled. Steps asks the step's Reconcile.
	ErrUncertain = errors.New("idempotency: the outcome of an outside call is not known")
	// ErrNotOwner: another call has taken the operation over, or may have. What
	// this call did since is not kept. Ask again for the result.
	ErrNotOwner = errors.New("idempotency: the operation has another owner")
	// ErrUnresolved: a commit was sent and it could not be learned whether it
	// landed. Asking again with the same operation is safe and will tell.
	ErrUnresolved = errors.New("idempotency: the outcome of the commit is not known")
	// ErrNoRecord: the operation was never begun, left nothing, or has expired.
	ErrNoRecord = errors.New("idempotency: no record of the operation")
	// ErrExpired: the record is gone but the effect is there. It is for effects
	// to return when a unique key of their own tables refuses what a new
	// operation would do; Covers returns it for times out of reach.
	ErrExpired = errors.New("idempotency: the record of the operation has expired")
	// ErrTooLarge: a result is larger than Config.MaxBody, or the results of the
	// steps so far leave no room for one more. Nothing was committed.
	ErrTooLarge = errors.New("idempotency: the result is too large")
	// ErrDiverged: the steps that run are not those that the record holds. The
	// code has changed between two runs of one operation.
	ErrDiverged = errors.New("idempotency: the steps differ from the recorded ones")
)

// inProgressError carries how long the present owner's lease has left.
type inProgressError struct {
	op    Operation
	after time.Duration
}

func (e *inProgressError) Error() string {
	return fmt.Sprintf("%v: %v; ask again in %v", ErrInProgress, e.op, e.after)
}

func (e *inProgressError) Is(target error) bool { return target == ErrInProgress }

// RetryAfter returns how long to wait before asking again when err is an
// ErrInProgress: what the present owner's lease has left, judged by the
// database's clock. The owner may end sooner, or renew.
func RetryAfter(err error) (time.Duration, bool) {
	var e *inProgressError
	if errors.As(err, &e) {
		return e.after, true
	}
	return 0, false
}

// uncertainError marks what an outside call returned.
type uncertainError struct{ err error }

func (e *uncertainError) Error() string   { return fmt.Sprintf("%v: %v", ErrUncertain, e.err) }
func (e *uncertainError) Unwrap() []error { return []error{ErrUncertain, e.err} }

// Uncertain marks the error of an outside call whose outcome cannot be known,
// such as a timeout after the request was sent. The operation stops until
// Outside.Reconcile has found out.
func Uncertain(err error) error { return &uncertainError{err} }
