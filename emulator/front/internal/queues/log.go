package queues

import (
	"context"
	"errors"
	"time"
)

// logReader knows how far the log of sends has been read.
//
// An INSERT stamps its row inside the turn of its transaction. So once a turn of our own has come, every row with an
// older stamp is either committed or will never be, and a reading that begins after that moment sees it. That moment is
// how far the log is known; the next reading begins there. A reading during somebody else's turn sees what is committed
// but moves nothing: the owner of that turn may yet commit rows with older stamps.
type logReader struct {
	read  bool      // it has been read from its beginning
	until time.Time // a moment in a turn of our own; zero: there was none yet
	rows  int       // how many the last reading gave
	whole int       // how many the last reading from the beginning gave
}

// logSlack is how far the clock may go back between two stamps, and how coarse a stamp may be, without a send being
// overlooked.
const logSlack = 500 * time.Millisecond

// since is the time at which the next reading begins; zero is the log's beginning.
func (l *logReader) since() time.Time {
	if l.until.IsZero() {
		return time.Time{}
	}
	return l.until.Add(-logSlack)
}

// done notes a reading that began at since. turn is a moment in a turn of our own before it, or zero.
func (l *logReader) done(since, turn time.Time, rows int) {
	l.read, l.rows = true, rows
	if since.IsZero() {
		l.whole = rows
	}
	if !turn.IsZero() {
		l.until = turn
	}
}

// rewind makes the next reading begin at the log's beginning.
func (l *logReader) rewind() { l.until = time.Time{} }

// overgrown reports whether so many messages are known that most of them may be gone: a message that is deleted before
// it is due is noticed only when it falls due, or when the whole log is read.
func (l *logReader) overgrown(known int) bool { return l.read && known > 2*l.whole+10_000 }

// jumped reports whether the machine's clock has been set back since the last turn by so much that the slack may not
// cover it. Then the log must be read from its beginning.
func (l *logReader) jumped() bool {
	if l.until.IsZero() {
		return false
	}
	now := time.Now()
	return setBack(now.Sub(l.until), now.Round(0).Sub(l.until.Round(0)))
}

// setBack compares the time that has passed by the monotonic clock with that by the wall clock.
func setBack(elapsed, shown time.Duration) bool { return elapsed-shown > logSlack/2 }

// Patience of the reader with somebody else's turn. Inside a turn of its own it need not wait for the emulator's clock,
// and may note how far the log is known; both are worth a short wait. When the unknown part of the log has become long,
// they are worth a longer one.
const (
	patience     = 5 * time.Millisecond
	longPatience = time.Second
	longLog      = 2000 // rows
)

// errBusy is returned by inTurn when the turn is somebody else's.
var errBusy = errors.New("the turn is taken")

// inTurn runs f in a turn, if one can be had without much waiting.
func (r *reader) inTurn(ctx context.Context, f func(context.Context, Querier) error) error {
	wait := patience
	if r.log.rows > longLog {
		wait = longPatience
	}
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(wait, func() { cancel(errBusy) })
	defer timer.Stop()
	err := r.queues.store.InTurn(waiting, r.db.name, func(ctx context.Context, q Querier) error {
		if !timer.Stop() {
			return errBusy
		}
		return f(ctx, q)
	})
	if err != nil && context.Cause(waiting) == errBusy {
		return errBusy
	}
	return err
}

// view runs f in a turn or, while others have theirs, outside of any. turn is a moment in the turn, or zero.
func (r *reader) view(ctx context.Context, f func(ctx context.Context, q Querier, turn time.Time) error) error {
	err := r.inTurn(ctx, func(ctx context.Context, q Querier) error { return f(ctx, q, time.Now()) })
	if errors.Is(err, errBusy) {
		err = r.queues.store.Outside(ctx, r.db.name, func(ctx context.Context, q Querier) error { return f(ctx, q, time.Time{}) })
	}
	return err
}
