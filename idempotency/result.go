package idempotency

import (
	"context"
	"time"

	"cloud.google.com/go/spanner"
)

// Effect does the work of an operation in tx and returns the result to keep.
// It may run several times before it commits once, as any function of a
// Spanner transaction; what it captures must be reset at its top. It must not
// call the outside, must not commit, and must not use tx after it returned.
type Effect func(ctx context.Context, tx *spanner.ReadWriteTransaction) (Result, error)

// Result is what an operation answers, kept so that it can be had again. The
// library interprets none of it; the zero Result is a valid one.
type Result struct {
	// Code is the caller's own, such as an HTTP status.
	Code int64
	// Type says what Body is, such as "application/json": up to 255
	// characters.
	Type string
	// Version is the version of Body's form, for readers of old results.
	Version int64
	// Body is the answer itself, up to Config.MaxBody bytes.
	Body []byte
	// ResourceID names what the operation made or changed, up to 1024
	// characters. A body that was not kept can be made again from it, see
	// Config.Present.
	ResourceID string
}

// Receipt is the stored result of an operation. It says what the answer was
// when the operation ended, not what the resource looks like now.
type Receipt struct {
	Result
	// Refused is set when the operation ended in a refusal that is final.
	Refused bool
	// Replayed is set when the effect is an earlier call's and not this one's.
	Replayed bool
	// BodyDropped is set when the body was larger than Config.MaxBody and was
	// not kept. The call that made it still gets it in full.
	BodyDropped bool
	// Present is set when Config.Present built the Result from what the
	// resource shows now.
	Present bool
	// Completed is the database's time of the commit that ended the operation,
	// and Expires the time from which the operation counts as new. Both are
	// zero in what Claim.Do returns for a first run, which has not committed.
	Completed, Expires time.Time
}

// Refuse returns an error that ends an operation with a refusal: declined,
// not allowed, out of stock. The effect's own writes are dropped and the
// refusal alone is kept, so that it is what every later call gets. It is not
// for a refusal before execution, such as a bad request: return that as a
// plain error, and no record is left.
func Refuse(r Result) error { return &Refusal{Result: r} }

// Refusal is the error that Refuse returns, for code that runs its own
// transactions and hands it to Claim.Refuse.
type Refusal struct{ Result Result }

// effect writes nothing but the refusal.
func (r *Refusal) effect(context.Context, *spanner.ReadWriteTransaction) (Result, error) {
	return r.Result, nil
}

// Error says that the operation was refused, without the body of the result.
func (r *Refusal) Error() string {
	return "idempotency: the operation is refused for good"
}
