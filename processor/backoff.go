package processor

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Backoff is the delay policy of retries: exponential with full jitter. The delay before attempt n+1 is drawn evenly
// from zero to Min times 2 to the n-1, at most Max; a random part keeps messages that failed together from coming back
// together.
type Backoff struct {
	// Min is the widest delay after the first failure; 0 means 1 s.
	Min time.Duration
	// Max bounds the delay of any attempt; 0 means 10 minutes.
	Max time.Duration
}

func (b Backoff) withDefaults() Backoff {
	if b.Min == 0 {
		b.Min = time.Second
	}
	if b.Max == 0 {
		b.Max = max(10*time.Minute, b.Min)
	}
	return b
}

func (b Backoff) validate() error {
	switch {
	case b.Min < time.Millisecond:
		return fmt.Errorf("Backoff.Min is %v, it must be at least 1ms (0 means 1s)", b.Min)
	case b.Max < b.Min:
		return fmt.Errorf("Backoff.Max is %v, it must be at least Backoff.Min, %v", b.Max, b.Min)
	}
	return nil
}

// ceiling returns the widest delay after the given number of failures, counted from 1. It doubles instead of shifting,
// so that no number of failures overflows it.
func (b Backoff) ceiling(failures int) time.Duration {
	d := b.Min
	for i := 1; i < failures && d < b.Max; i++ {
		if d > b.Max/2 {
			return b.Max
		}
		d *= 2
	}
	return min(d, b.Max)
}

// delay draws the delay after the given number of failures.
func (b Backoff) delay(failures int) time.Duration {
	return rand.N(b.ceiling(failures))
}
