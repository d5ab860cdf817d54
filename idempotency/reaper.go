package idempotency

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// ReaperConfig tunes a Reaper. The zero value is a good one.
type ReaperConfig struct {
	// Every is the time between sweeps, give or take a tenth. Zero: 4 h. At
	// least 1 s.
	Every time.Duration
	// Batch is the number of records that one transaction deletes. Zero: 500.
	// At most 5000.
	Batch int
}

const (
	minEvery = time.Second
	maxBatch = 5000
	// soon bounds the wait for the first sweep, or processes that live shorter
	// than Every would never sweep.
	soon = 5 * time.Minute
)

func (c ReaperConfig) withDefaults() ReaperConfig {
	setDefault(&c.Every, 4*time.Hour)
	setDefault(&c.Batch, 500)
	return c
}

func (c ReaperConfig) validate() error {
	switch {
	case c.Every < minEvery:
		return fmt.Errorf("%w: ReaperConfig.Every is %v; it must be at least %v", ErrInvalid, c.Every, minEvery)
	case c.Batch < 0 || c.Batch > maxBatch:
		return fmt.Errorf("%w: ReaperConfig.Batch is %d; it must be 1 to %d", ErrInvalid, c.Batch, maxBatch)
	}
	return nil
}

// Reaper deletes the records that have expired and reports the operations that
// have not ended. Nothing depends on it but the size of the table: expiry is
// judged on reading. Several may run at once.
type Reaper struct {
	store *Store
	cfg   ReaperConfig
}

// Reaper returns a Reaper for the Store's table.
func (s *Store) Reaper(cfg ReaperConfig) (*Reaper, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Reaper{store: s, cfg: cfg}, nil
}

// Run sweeps again and again, the first time soon, until ctx ends; then it
// returns nil, and nothing of it runs on. A sweep that fails is logged and the
// next comes in its time.
func (r *Reaper) Run(ctx context.Context) error {
	repeat(ctx, r.cfg.Every, func() {
		swept, err := r.Sweep(ctx)
		log := r.store.cfg.Logger.With("table", r.store.table, "deleted", swept.Deleted,
			"records", swept.Records, "bytes", swept.Bytes, "lag", swept.Lag, "unfinished", len(swept.Unfinished))
		switch {
		case err != nil && ctx.Err() == nil:
			log.WarnContext(ctx, "idempotency: sweep failed", "error", err)
		case len(swept.Unfinished) > 0:
			log.WarnContext(ctx, "idempotency: swept; some operations have no owner and have not ended",
				"oldest", swept.Unfinished[0].Created, "operation", swept.Unfinished[0].Operation, "state", swept.Unfinished[0].State)
		default:
			log.InfoContext(ctx, "idempotency: swept")
		}
	})
	return nil
}

// repeat calls f until ctx ends: first soon, then every interval with jitter.
func repeat(ctx context.Context, interval time.Duration, f func()) {
	pause := rand.N(min(interval, soon))
	for {
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		f()
		pause = interval - interval/10 + rand.N(interval/5)
	}
}
