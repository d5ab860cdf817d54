package idempotency

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
)

// Config tunes a Store. The zero value is a good one.
type Config struct {
	// Lease is how long an operation in steps belongs to its owner without a
	// sign of life, by the database's clock: the longest that others wait
	// after a crash. It is renewed while the owner runs. Zero: 30 s. At least
	// 100 ms.
	Lease time.Duration
	// HandlerTimeout bounds the context of one run of an effect in Do, and of
	// a whole run of the function given to Steps. After it the lease is no
	// longer renewed, so that a handler that ignores its context does not hold
	// an operation for ever. A local step is not renewed while it runs and is
	// bounded by what its lease has left besides. Zero: 1 min.
	HandlerTimeout time.Duration
	// CommitTimeout bounds the wait for the answer of a Commit. A caller that
	// goes away does not end a commit that is on its way: a call returns up to
	// this long after its context has ended, and 10 s more if the outcome has
	// to be looked up. Zero: 30 s.
	CommitTimeout time.Duration
	// MaxBody is the size in bytes that a Result's body, or the encoded result
	// of one step, may have. Zero: 64 KiB. At most 8 MiB.
	MaxBody int
	// DropLargeBodies keeps a result without its body, and marks it, when the
	// body is larger than MaxBody. Otherwise such a result is refused with
	// ErrTooLarge and the effect is not committed. Results of steps are always
	// refused: a resume could not go on without them.
	DropLargeBodies bool
	// Present builds the answer of a replay whose body was not kept but which
	// names a resource. It is called outside of any transaction. Its answer
	// shows the resource as it is now, which need not be the answer the first
	// caller got: the Receipt says so. Nil: the receipt has no body.
	Present func(ctx context.Context, op Operation, r Receipt) (Result, error)
	// Logger gets what no caller is told: failed releases, handlers that
	// ignore their context, the counts of sweeps. Nil: slog.Default.
	Logger *slog.Logger
	// MeterProvider gets the figures. Nil: OpenTelemetry's global one.
	MeterProvider metric.MeterProvider
}

const (
	minLease   = 100 * time.Millisecond
	maxMaxBody = 8 << 20
)

func (c Config) withDefaults() Config {
	setDefault(&c.Lease, 30*time.Second)
	setDefault(&c.HandlerTimeout, time.Minute)
	setDefault(&c.CommitTimeout, 30*time.Second)
	setDefault(&c.MaxBody, 64<<10)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.MeterProvider == nil {
		c.MeterProvider = otel.GetMeterProvider()
	}
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// validate checks a configuration that has its defaults, for records that are
// kept for retention.
func (c Config) validate(retention time.Duration) error {
	switch {
	case c.Lease < minLease:
		return fmt.Errorf("%w: Config.Lease is %v; it must be at least %v", ErrInvalid, c.Lease, minLease)
	case c.HandlerTimeout < 0:
		return fmt.Errorf("%w: Config.HandlerTimeout is %v; it must be positive", ErrInvalid, c.HandlerTimeout)
	case c.CommitTimeout < 0:
		return fmt.Errorf("%w: Config.CommitTimeout is %v; it must be positive", ErrInvalid, c.CommitTimeout)
	case c.MaxBody < 0 || c.MaxBody > maxMaxBody:
		return fmt.Errorf("%w: Config.MaxBody is %d; it must be 1 to %d", ErrInvalid, c.MaxBody, maxMaxBody)
	case retention <= c.Lease || retention <= c.HandlerTimeout:
		return fmt.Errorf("%w: the retention is %v; it must be longer than Config.Lease (%v) and Config.HandlerTimeout (%v), or a record could expire under a call that still runs",
			ErrInvalid, retention, c.Lease, c.HandlerTimeout)
	}
	return nil
}
