package idempotencyhttp

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"cloud.google.com/go/spanner"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/idempotency"
)

// ErrRefused is for handlers of mode Tx to return when the answer that they
// have written refuses the operation for good: declined, sold out. Their
// writes are dropped, and the answer is kept and replayed.
var ErrRefused = errors.New("idempotencyhttp: refused for good")

// notKept carries an answer with which nothing is committed.
type notKept struct{ answer answer }

func (*notKept) Error() string {
	return "idempotencyhttp: the answer's status is 400 or above; nothing is kept"
}

// failed makes an answer of an error. What a client may not know is logged.
func (m *Middleware) failed(ctx context.Context, op idempotency.Operation, err error) answer {
	var asWritten *notKept
	if errors.As(err, &asWritten) {
		return asWritten.answer
	}
	p, level := m.problem(err)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		level = slog.LevelInfo // the client has hung up: no fault of the service
	}
	if p.Status >= http.StatusInternalServerError || level > slog.LevelInfo {
		m.cfg.Logger.Log(ctx, level, "idempotencyhttp: an operation has failed",
			"operation", op, "status", p.Status, "error", err)
	}
	return p.answer()
}

// problem is the table of answers.
func (m *Middleware) problem(err error) (*Problem, slog.Level) {
	var own *Problem
	switch {
	case errors.Is(err, idempotency.ErrMismatch):
		return newProblem(http.StatusUnprocessableEntity, "key-reused", "The Idempotency-Key was used for another request",
			"Send this request with a key of its own, or the former request as it was."), slog.LevelInfo
	case inProgress(err):
		return newProblem(http.StatusConflict, "in-progress", "A request with this Idempotency-Key is in progress",
			"Send the same request again later.").after(m.retryAfter(err)), slog.LevelInfo
	case errors.Is(err, idempotency.ErrUnresolved):
		return newProblem(http.StatusServiceUnavailable, "unresolved", "It is not known yet whether the operation took effect",
			"Send the same request with the same key again: that is safe and will tell.").after(m.cfg.RetryAfter), slog.LevelWarn
	case errors.Is(err, idempotency.ErrUncertain):
		return newProblem(http.StatusServiceUnavailable, "uncertain", "It is not known yet what became of a part of the operation",
			"Send the same request with the same key again: the operation goes on when that is known.").after(m.cfg.RetryAfter), slog.LevelWarn
	case errors.Is(err, idempotency.ErrExpired):
		return newProblem(http.StatusGone, "expired", "The operation took effect long ago and its answer is no longer known",
			"Look at the resource. A key is remembered for a limited time."), slog.LevelError
	case errors.As(err, &own):
		return own.withDefaults(), slog.LevelInfo
	case errors.Is(err, idempotency.ErrTooLarge):
		return newProblem(http.StatusInternalServerError, "too-large", "The answer is too large to be kept",
			"What it answers was not committed. Sending the same request again does not help."), slog.LevelError
	case passing(err):
		return newProblem(http.StatusServiceUnavailable, "unavailable", "The operation could not be done now",
			"Send the same request with the same key again.").after(m.cfg.RetryAfter), slog.LevelWarn
	default:
		return newProblem(http.StatusInternalServerError, "failed", "The operation has failed",
			"Sending the same request with the same key again is safe."), slog.LevelError
	}
}

// inProgress says that another request has the operation.
func inProgress(err error) bool {
	return errors.Is(err, idempotency.ErrInProgress) || errors.Is(err, idempotency.ErrNotOwner) || errors.Is(err, errWaited)
}

// passing says that trying again may help: the database's troubles, and time
// that was too short.
func passing(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	switch spanner.ErrCode(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Aborted, codes.ResourceExhausted:
		return true
	default:
		return false
	}
}
