package lease

import "errors"

var (
	// ErrLost is the cause of a context that ended because the lease was not renewed in time, and the error of Confirm
	// when the lease could not be renewed even once. Somebody else may have the message now.
	ErrLost = errors.New("lease: lost")

	// ErrDeferralOver is the cause of a context that ended because the time given to Defer or Checkpoint is over: the
	// message is about to come due again.
	ErrDeferralOver = errors.New("lease: the time of the deferral is over")

	// ErrStopped is returned by Next once the context of Run has ended.
	ErrStopped = errors.New("lease: the receiver has stopped")

	// ErrRunning is returned by a second Run.
	ErrRunning = errors.New("lease: Run was called before; make a new Receiver to run again")

	// ErrReleased is returned by the methods of a Held that was released.
	ErrReleased = errors.New("lease: the message was released")

	// ErrInvalid is wrapped when a setting or an argument is refused.
	ErrInvalid = errors.New("lease: invalid")
)
