package backend

import "context"

// Releaser is the ability of a queue to give messages back before their leases end, found by type assertion.
type Releaser interface {
	// Release makes the deliveries available to others at once and takes back their attempts: nothing was done with
	// them. Those that are not held any more are left alone; the error then wraps ErrNotHeld, and all the others have been
	// released. After any other error nothing is known; a delivery that was not released comes back when its lease ends.
	Release(context.Context, []Delivery) error
}
