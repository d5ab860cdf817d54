package processor

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/spanqueue/spanqueue/lease"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// Config changes how a Processor works. The zero value is good.
type Config struct {
	// Name names the handler in figures, logs and transaction tags, which are "queue=<queue>,handler=<name>" cut to 50
	// characters; empty means the queue's name.
	Name string

	// Concurrency is how many messages are handled at the same time, 1 to 10,000; 0 means 10.
	Concurrency int

	// MaxBatch is how many messages a Batch handler gets at a time at most, 1 to 1,000; 0 means 50. Each costs a mutation
	// of the commit besides what the handler writes, and the service takes 80,000.
	MaxBatch int

	// Linger is how long a Batch handler waits for more messages when fewer than MaxBatch are here, at most 1 s; 0 means
	// not at all. It is time that the first message waits.
	Linger time.Duration

	// HandlerTimeout ends the context of a handler's single run, at least 1 ms; 0 means 30 s. Spanner may abort a
	// transaction that was idle for 10 s, whatever this says: the handler then runs again, unless it has used up its time,
	// which is a failure. The handler's context tells by ending, with ErrHandlerTimeout as its cause; it has no Deadline.
	HandlerTimeout time.Duration

	// CommitTimeout is how long a commit is waited for before its outcome counts as unknown and is looked up, at least
	// 1 ms; 0 means 30 s.
	CommitTimeout time.Duration

	// ResolveTimeout bounds the search for the outcome of an unknown commit, from the moment it became unknown, at least
	// 1 ms; 0 means 2 minutes. After it the message is left to its lease, and the delivery ends as Unresolved.
	ResolveTimeout time.Duration

	// DrainTimeout is how long handlers may go on after a stop before their contexts end; 0 means 30 s. It should be
	// longer than what a handler usually takes.
	DrainTimeout time.Duration

	// MaxAttempts is how many failures a message may have before it is moved to the dead letters, at least 1; 0 means 25. A
	// handler that was started without coming to an outcome (it killed its process) once more often than that is not
	// started again either. It needs the tables schema.Attempts and schema.DeadLetters of the queue. Below zero there is
	// no limit, and no tables are needed: failures are counted in memory for the back-off, and retried for ever.
	MaxAttempts int

	// MaxRuns bounds how often the database may abort a delivery's transaction before the message is left to its lease,
	// at least 1; 0 means 100. So it is when the runs have taken four times HandlerTimeout together, or four times
	// CommitTimeout if that is longer: a handler that is too slow for the database is aborted in every run.
	MaxRuns int

	// Backoff is the policy of retries after an error.
	Backoff Backoff

	// Receiver changes how messages are received and kept. Its HandlerTimeout is set to the one above.
	Receiver lease.Config

	// Logger gets what an operator should know; nil means slog.Default. A line may name a message's key and the text of an
	// error, and the stack of a panic, never a payload. A logger that blocks or panics delays nothing and costs lines.
	Logger *slog.Logger

	// MeterProvider and TracerProvider get figures and spans by OpenTelemetry's conventions for messaging: a span and a
	// count a delivery, with its outcome; no key, id or error text among the labels. The package documentation lists them.
	// Nil means OpenTelemetry's global one. An exporter that blocks or panics delays nothing and costs figures. A sampler,
	// and a span processor's OnStart, are waited for: handlers get the span in their contexts.
	MeterProvider  metric.MeterProvider
	TracerProvider trace.TracerProvider
}

const (
	defaultConcurrency    = 10
	maxConcurrency        = 10_000
	defaultMaxBatch       = 50
	maxMaxBatch           = 1000
	maxLinger             = time.Second
	defaultHandlerTimeout = 30 * time.Second
	defaultCommitTimeout  = 30 * time.Second
	defaultResolveTimeout = 2 * time.Minute
	defaultDrainTimeout   = 30 * time.Second
	defaultMaxAttempts    = 25
	defaultMaxRuns        = 100
)

func (c Config) withDefaults(queueName string) Config {
	if c.Name == "" {
		c.Name = queueName
	}
	if c.Concurrency == 0 {
		c.Concurrency = defaultConcurrency
	}
	if c.MaxBatch == 0 {
		c.MaxBatch = defaultMaxBatch
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.HandlerTimeout, defaultHandlerTimeout},
		{&c.CommitTimeout, defaultCommitTimeout},
		{&c.ResolveTimeout, defaultResolveTimeout},
		{&c.DrainTimeout, defaultDrainTimeout},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if c.MaxAttempts == 0 {
		c.MaxAttempts = defaultMaxAttempts
	}
	if c.MaxRuns == 0 {
		c.MaxRuns = defaultMaxRuns
	}
	c.Backoff = c.Backoff.withDefaults()
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Receiver.HandlerTimeout = c.HandlerTimeout
	if c.Receiver.Logger == nil {
		c.Receiver.Logger = c.Logger
	}
	return c
}

func (c Config) validate() error {
	if c.Concurrency < 1 || c.Concurrency > maxConcurrency {
		return fmt.Errorf("%w: Concurrency is %d, it must be from 1 to %d", ErrInvalid, c.Concurrency, maxConcurrency)
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"HandlerTimeout", c.HandlerTimeout},
		{"CommitTimeout", c.CommitTimeout},
		{"ResolveTimeout", c.ResolveTimeout},
		{"DrainTimeout", c.DrainTimeout},
	} {
		if d.value < time.Millisecond {
			return fmt.Errorf("%w: %s is %v, it must be at least 1ms (0 means the default)", ErrInvalid, d.field, d.value)
		}
	}
	if c.MaxBatch < 1 || c.MaxBatch > maxMaxBatch {
		return fmt.Errorf("%w: MaxBatch is %d, it must be from 1 to %d", ErrInvalid, c.MaxBatch, maxMaxBatch)
	}
	if c.Linger < 0 || c.Linger > maxLinger {
		return fmt.Errorf("%w: Linger is %v, it must be from 0 to %v", ErrInvalid, c.Linger, maxLinger)
	}
	if err := c.Backoff.validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if c.MaxRuns < 1 {
		return fmt.Errorf("%w: MaxRuns is %d, it must be at least 1 (0 means %d)", ErrInvalid, c.MaxRuns, defaultMaxRuns)
	}
	return nil
}

// patience is how long the database is waited for where no other bound is: for acknowledgements, and for its time.
func (c Config) patience() time.Duration { return max(c.HandlerTimeout, c.CommitTimeout) }

// runTime is how long the runs of a transaction may take together before another one is begun.
func (c Config) runTime() time.Duration { return 4 * c.patience() }
