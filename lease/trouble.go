package lease

import (
	"log/slog"
	"sync"
	"time"
)

const (
	// A trouble that goes on is logged again after firstSilence, and then ever more seldom, down to once each longSilence.
	firstSilence = 5 * time.Second
	longSilence  = time.Minute
)

// trouble keeps calls that fail again and again from filling the log: the first failure has a line at once, later ones share
// lines that get fewer, and when a call works again one line says so. A trouble that comes and goes is one trouble. Each line
// tells the number of failures since the line before.
type trouble struct {
	tell func(level slog.Level, text string, attrs ...slog.Attr)
	text string // says that a call has failed
	over string // says that calls work again

	mu      sync.Mutex
	untold  int           // failures since the last line
	open    bool          // the last line was one of a failure
	last    time.Time     // when a call failed last
	nextAt  time.Time     // from when on a failure has a line again
	silence time.Duration // after the next line
}

// failed notes a failed call, and tells of it if it is time to.
func (t *trouble) failed(now time.Time, err error, attrs ...slog.Attr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.last) > longSilence {
		t.silence, t.nextAt = firstSilence, now
	}
	t.last = now
	t.untold++
	if now.Before(t.nextAt) {
		return
	}
	t.open = true
	t.nextAt, t.silence = now.Add(t.silence), min(2*t.silence, longSilence)
	t.lineLocked(slog.LevelWarn, t.text, append([]slog.Attr{slog.Any("error", err)}, attrs...))
}

// worked notes a call that did not fail, and tells of it if the last line was one of a failure.
func (t *trouble) worked() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open {
		t.open = false
		t.lineLocked(slog.LevelInfo, t.over, nil)
	}
}

func (t *trouble) lineLocked(level slog.Level, text string, attrs []slog.Attr) {
	t.tell(level, text, append(attrs, slog.Int("failures", t.untold))...)
	t.untold = 0
}
