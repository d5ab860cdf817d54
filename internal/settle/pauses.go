package settle

import (
	"context"
	"math/rand/v2"
	"time"

	"cloud.google.com/go/spanner"
	"google.golang.org/grpc/codes"
)

// Pauses are the pauses of one search for an outcome, between its questions and runs. Each is drawn from the upper half of
// a width that doubles from one pause to the next, so that a database in trouble is asked less and less often, and not by
// all searches at the same moments. The zero value is ready; it is not for several goroutines.
type Pauses struct{ width time.Duration }

const (
	firstPause = 50 * time.Millisecond
	// troubledPause is the least width after an answer by which the database cannot be reached, or has too much to do.
	troubledPause = 500 * time.Millisecond
	widestPause   = 5 * time.Second
)

// Wait pauses after a try that ended with err, at most until giveUp, and reports whether to try again: not when ctx has
// ended, or giveUp had come before the pause. A zero giveUp is no bound.
func (p *Pauses) Wait(ctx context.Context, err error, giveUp time.Time) bool {
	d := p.next(err)
	if !giveUp.IsZero() {
		left := time.Until(giveUp)
		if left <= 0 {
			return false
		}
		d = min(d, left)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// next draws the next pause.
func (p *Pauses) next(err error) time.Duration {
	p.width = min(max(firstPause, 2*p.width), widestPause)
	switch spanner.ErrCode(err) {
	case codes.ResourceExhausted, codes.Unavailable:
		p.width = max(p.width, troubledPause)
	}
	return p.width/2 + rand.N(p.width/2) + 1
}
