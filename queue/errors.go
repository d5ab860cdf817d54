package queue

import (
	"errors"

	"github.com/spanqueue/spanqueue/internal/backend"
)

var (
	// ErrNotHeld is wrapped by every guarded write that did not find the delivery: it was acknowledged, sent again or
	// purged, by somebody else or by an earlier run of the same function; or, in a queue table, it was given back or taken
	// by another receiver. Where a statement of Spanner's failed, its error is wrapped beside it.
	ErrNotHeld = backend.ErrNotHeld

	// ErrExists is wrapped when a sent key is already in the queue: by somebody's send, or by this very one, when its first
	// answer was lost and the client ran it again by itself. Send with OrIgnore to tell the two apart.
	ErrExists = errors.New("queue: key already in the queue")

	// ErrMismatch is wrapped when OrIgnore finds the key in the queue with another payload.
	ErrMismatch = errors.New("queue: key already in the queue with another payload")

	// ErrInvalid is wrapped when a message or an argument is refused before anything was sent to the database.
	ErrInvalid = errors.New("queue: invalid")
)
