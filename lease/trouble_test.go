package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/spanqueue/spanqueue/queue/queuetest"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// The first failure is told at once, later ones share lines that get fewer, down to one a minute.
func TestTroubleThatGoesOn(t *testing.T) {
	t.Parallel()
	lines := &lines{}
	tr := trouble{tell: lines.tell, text: "failed", over: "over"}
	begun := time.Unix(1000, 0)
	var at []time.Duration
	for d := time.Duration(0); d <= 10*time.Minute; d += 100 * time.Millisecond {
		before := lines.count("failed")
		tr.failed(begun.Add(d), errors.New("away"))
		if lines.count("failed") > before {
			at = append(at, d)
		}
	}
	s := time.Second
	require.Equal(t, []time.Duration{0, 5 * s, 15 * s, 35 * s, 75 * s, 135 * s, 195 * s}, at[:7])
	require.Len(t, at, 7+6)
	require.Equal(t, 1, lines.failures("failed")[0])
	require.Equal(t, 50, lines.failures("failed")[1])
	require.Equal(t, 600, lines.failures("failed")[12])
	require.Zero(t, lines.count("over"))

	tr.worked()
	tr.worked()
	require.Equal(t, 1, lines.count("over"))
	told := 0
	for _, n := range slices.Concat(lines.failures("failed"), lines.failures("over")) {
		told += n
	}
	require.Equal(t, 6001, told, "no failure is left out")

	// After a quiet minute it is a new trouble.
	tr.failed(begun.Add(time.Hour), errors.New("away"))
	tr.failed(begun.Add(time.Hour+firstSilence), errors.New("away"))
	require.Equal(t, 15, lines.count("failed"))
}

// One that comes and goes is told as seldom as one that stays.
func TestTroubleThatComesAndGoes(t *testing.T) {
	t.Parallel()
	lines := &lines{}
	tr := trouble{tell: lines.tell, text: "failed", over: "over"}
	tr.worked()
	require.Zero(t, lines.count("over"), "nothing was amiss")
	begun := time.Unix(1000, 0)
	for d := time.Duration(0); d <= 10*time.Minute; d += 100 * time.Millisecond {
		tr.failed(begun.Add(d), errors.New("away"))
		tr.worked()
	}
	require.Equal(t, 13, lines.count("failed"))
	require.Equal(t, 13, lines.count("over"))
}

// A database that is away for minutes costs a few lines for the renewals, and a few for the streams.
func TestDatabaseAwayFillsNoLog(t *testing.T) {
	const (
		notRenewed = "spanqueue: leases could not be renewed; they are tried again while they may live"
		renewed    = "spanqueue: leases are renewed again"
		failed     = "spanqueue: a receive stream has failed and is opened again"
		works      = "spanqueue: receive streams work again"
	)
	away := queuetest.Always(queuetest.Fault{Err: queuetest.Code(codes.Unavailable)})
	const minutes = 5

	t.Run("renewals", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			m, lines := memory(t), &lines{}
			send(t, m.Queue(), 1)
			m.SetFault(queuetest.OpRenew, away)
			r := start(t, m.Queue(), Config{Logger: slog.New(lines)})
			for begun := time.Now(); time.Since(begun) < minutes*time.Minute; { // the message comes again and again
				h := r.next(time.Minute)
				time.Sleep(leaseLength)
				h.Release()
			}
			require.Greater(t, r.Stats().RenewErrors, int64(300))
			require.LessOrEqual(t, lines.count(notRenewed), 9)
			require.GreaterOrEqual(t, lines.count(notRenewed), minutes, "but it is not forgotten")
			require.Zero(t, lines.count(renewed))

			m.SetFault(queuetest.OpRenew, nil)
			h := r.next(time.Minute)
			time.Sleep(10 * leaseLength)
			require.Equal(t, 1, lines.count(renewed))
			h.Release()
			r.end()
		})
	})
	t.Run("streams", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			m, lines := memory(t), &lines{}
			m.SetFault(queuetest.OpReceive, away)
			r := start(t, m.Queue(), Config{Logger: slog.New(lines)})
			w := new(waiters).start(r, 1, 0)
			time.Sleep(minutes * time.Minute)
			require.Greater(t, r.Stats().StreamErrors, int64(30))
			require.LessOrEqual(t, lines.count(failed), 9)
			require.GreaterOrEqual(t, lines.count(failed), minutes, "but it is not forgotten")
			require.Zero(t, lines.count(works))

			m.SetFault(queuetest.OpReceive, nil)
			time.Sleep(time.Minute)
			require.Equal(t, 1, lines.count(works), "an idle stream has ended well")
			r.end()
			w.all.Wait()
		})
	})
	t.Run("streams that bring something first", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			m, lines := memory(t), &lines{}
			m.SetFault(queuetest.OpRow, func(n int) queuetest.Fault {
				if n%2 == 0 {
					return queuetest.Fault{Err: queuetest.Code(codes.Unavailable)}
				}
				return queuetest.Fault{}
			})
			r := start(t, m.Queue(), Config{Logger: slog.New(lines)})
			w := new(waiters).start(r, 4, 0)
			for i := range int64(minutes * 60) {
				send(t, m.Queue(), i)
				time.Sleep(time.Second)
			}
			require.Greater(t, r.Stats().StreamErrors, int64(100))
			require.LessOrEqual(t, lines.count(failed), 9)
			require.LessOrEqual(t, lines.count(works), 9)
			r.end()
			w.all.Wait()
		})
	})
}

// lines keeps log lines: their texts, and how many failures they tell.
type lines struct {
	mu  sync.Mutex
	all []toldLine
}

type toldLine struct {
	text     string
	failures int
}

func (l *lines) tell(level slog.Level, text string, attrs ...slog.Attr) {
	r := slog.NewRecord(time.Time{}, level, text, 0)
	r.AddAttrs(attrs...)
	if err := l.Handle(context.Background(), r); err != nil {
		panic(fmt.Sprint("lines: ", err))
	}
}

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	told := toldLine{text: r.Message}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "failures" {
			told.failures = int(a.Value.Int64())
		}
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, told)
	return nil
}

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *lines) WithGroup(string) slog.Handler            { return l }

// failures returns what the lines with the text tell.
func (l *lines) failures(text string) []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []int
	for _, line := range l.all {
		if line.text == text {
			all = append(all, line.failures)
		}
	}
	return all
}

func (l *lines) count(text string) int { return len(l.failures(text)) }
