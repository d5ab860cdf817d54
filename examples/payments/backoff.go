package main

import (
	"math/rand/v2"
	"time"
)

// backoff is how a customer's app comes again: a bounded number of attempts,
// and between them what the service asks for plus a random part of a time that
// doubles. The random part keeps those who failed together from coming back
// together.
type backoff struct {
	attempts int
	min, max time.Duration
}

// delay is the pause after attempt n, counted from 1.
func (b backoff) delay(n int, retryAfter time.Duration, random *rand.Rand) time.Duration {
	widest := b.max
	if shift := n - 1; shift < 30 {
		widest = min(b.max, b.min<<shift)
	}
	return retryAfter + time.Duration(random.Int64N(int64(widest)+1))
}
