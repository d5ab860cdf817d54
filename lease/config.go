package lease

import (
	"fmt"
	"log/slog"
	"time"
)

// Config changes how a Receiver works. The zero value is good.
type Config struct {
	// MaxDuration is how long one receive stream stays open, 1 s to 24 h; 0 means 2 minutes. A random tenth is taken off,
	// so that the streams of many workers do not end together. The service advises about 20 minutes; but Google's client
	// re-opens a broken stream in silence, and when that does no good it takes until MaxDuration + 10 s before the
	// Receiver sees it. Shorter is safer.
	MaxDuration time.Duration

	// HighWater is the most messages that wait here for a free slot before the stream is closed, 1 to 1,000,000; 0 means
	// 1000. What is left of a batch is still taken, up to 20. Usually fewer wait: no more than will be started within a
	// lease, as far as the last messages tell.
	HighWater int

	// Prefetch is how many messages are taken for each slot in the first half lease, while it is not known yet how fast
	// slots become free, 1 to 1000; 0 means 64. A worker whose messages take long wants fewer: others could have them. With
	// four slots or less it does not apply: they take what they can start.
	Prefetch int

	// LowWater is how many messages are kept waiting even when slots become free too seldom to need them, 0 to HighWater.
	// They are renewed while they wait, and no other worker gets them.
	LowWater int

	// MaxBytes is the most payload bytes that wait here before the stream is closed, at least 1; 0 means 64 MiB.
	MaxBytes int64

	// MaxWait is how long a message waits here for a free slot before it is let go, so that another worker may have it: it
	// is no longer renewed and comes back when its lease ends. Nothing is kept waiting then until a slot becomes free. At
	// least one lease length; 0 means three.
	MaxWait time.Duration

	// Margin is taken off every lease: it covers the way of the end of a context to the code that must stop, and the drift
	// between this machine's monotonic clock and the database's. From 1 ms to a quarter of the lease length; 0 means a
	// twentieth of it.
	Margin time.Duration

	// HandlerTimeout is the longest that one message may be worked on. Defer and Checkpoint refuse a shorter time, since
	// the message would come due while the work goes on. 0 means that nothing is refused.
	HandlerTimeout time.Duration

	// Logger gets what an operator should know; nil means slog.Default. A logger that blocks or panics delays nothing
	// but the end of Run, for a second at most; its lines are dropped.
	Logger *slog.Logger
}

const (
	defaultMaxDuration = 2 * time.Minute
	maxMaxDuration     = 24 * time.Hour
	defaultHighWater   = 1000
	maxHighWater       = 1_000_000
	defaultMaxBytes    = 64 << 20
	defaultPrefetch    = 64
	maxPrefetch        = 1000
	maxWaitLeases      = 3
	marginPart         = 20
	maxMarginPart      = 4
)

func (c Config) withDefaults(leaseLength time.Duration) Config {
	if c.MaxDuration == 0 {
		c.MaxDuration = defaultMaxDuration
	}
	if c.HighWater == 0 {
		c.HighWater = max(defaultHighWater, c.LowWater)
	}
	if c.Prefetch == 0 {
		c.Prefetch = defaultPrefetch
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = defaultMaxBytes
	}
	if c.MaxWait == 0 {
		c.MaxWait = maxWaitLeases * leaseLength
	}
	if c.Margin == 0 {
		c.Margin = max(leaseLength/marginPart, time.Millisecond)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c Config) validate(leaseLength time.Duration) error {
	switch {
	case c.MaxDuration < time.Second || c.MaxDuration > maxMaxDuration:
		return invalid("MaxDuration is %v, it must be from 1s to %v", c.MaxDuration, maxMaxDuration)
	case c.HighWater < 1 || c.HighWater > maxHighWater:
		return invalid("HighWater is %d, it must be from 1 to %d", c.HighWater, maxHighWater)
	case c.Prefetch < 1 || c.Prefetch > maxPrefetch:
		return invalid("Prefetch is %d, it must be from 1 to %d", c.Prefetch, maxPrefetch)
	case c.LowWater < 0 || c.LowWater > c.HighWater:
		return invalid("LowWater is %d, it must be from 0 to HighWater, %d", c.LowWater, c.HighWater)
	case c.MaxBytes < 1:
		return invalid("MaxBytes is %d, it must be at least 1", c.MaxBytes)
	case c.MaxWait < leaseLength:
		return invalid("MaxWait is %v, it must be at least the lease length, %v", c.MaxWait, leaseLength)
	case c.Margin < time.Millisecond || c.Margin > leaseLength/maxMarginPart:
		return invalid("Margin is %v, it must be from 1ms to a quarter of the lease length, %v", c.Margin, leaseLength/maxMarginPart)
	case c.HandlerTimeout < 0:
		return invalid("HandlerTimeout is %v, it must not be negative", c.HandlerTimeout)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}
