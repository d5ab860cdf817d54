package processor

import (
	"errors"
	"fmt"
	"time"

	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/queue"
)

// fate is the marker that a handler returns, wrapped or not, to say what shall become of the message.
type fate struct {
	kind  fateKind
	after time.Duration
	err   error
}

type fateKind int

const (
	fateRetry fateKind = iota
	fateSnooze
	fateDiscard
	fateDeadLetter
)

// Retry returns an error that sends the message again after the given delay, instead of the delay of the retry policy.
// It counts as a failed attempt. The shortest delay is a quarter of a second, also for one of zero or below.
func Retry(err error, after time.Duration) error { return &fate{fateRetry, after, err} }

// Snooze returns an error that sends the message again after the delay. It is not a failure and no attempt is used. The
// shortest delay is a quarter of a second, also for one of zero or below.
func Snooze(after time.Duration) error { return &fate{fateSnooze, after, nil} }

// Discard returns an error that takes the message out of the queue for good. Nothing else of the handler's transaction
// is kept.
func Discard(err error) error { return &fate{fateDiscard, 0, err} }

// DeadLetter returns an error that moves the message to the dead letters at once. Nothing else of the handler's
// transaction is kept. Without dead letters (Config.MaxAttempts below zero) it is an error like any other.
func DeadLetter(err error) error { return &fate{fateDeadLetter, 0, err} }

func (f *fate) Error() string {
	switch f.kind {
	case fateSnooze:
		return fmt.Sprintf("processor: snooze for %v", f.after)
	case fateDiscard:
		return fmt.Sprintf("processor: discard: %v", f.err)
	case fateDeadLetter:
		return fmt.Sprintf("processor: dead-letter: %v", f.err)
	}
	return fmt.Sprintf("processor: retry after %v: %v", f.after, f.err)
}

func (f *fate) Unwrap() error { return f.err }

// fateOf reads the fate from a handler's error; an error without one is to be retried by the policy, if that may help.
func fateOf(err error) (f *fate, marked bool) {
	switch {
	case errors.As(err, &f):
		return f, true
	case isFinal(err):
		return &fate{kind: fateDeadLetter, err: err}, false
	}
	return &fate{kind: fateRetry, err: err}, false
}

// isFinal says whether an error is one that no later attempt makes good.
func isFinal(err error) bool {
	return errors.Is(err, ErrUndecodable) || errors.Is(err, queue.ErrInvalid) ||
		errors.Is(err, idempotency.ErrInvalid) || errors.Is(err, idempotency.ErrMismatch)
}
