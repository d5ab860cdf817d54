package lease

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/spanqueue/spanqueue/internal/boottime"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuetest"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// Four messages were received, one is in hand, and the receiver is told to stop: the one is kept until it is released, the
// other three are not started, not renewed, and elsewhere within a lease.
func TestStopWithMessagesThatWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		send(t, m.Queue(), 1, 2, 3, 4)
		a := start(t, m.Queue(), Config{LowWater: 10})
		h := a.next(time.Second)
		time.Sleep(200 * time.Millisecond)
		require.Equal(t, 3, a.Stats().Waiting)
		a.stop()
		synctest.Wait()
		_, err := a.Next(t.Context())
		require.ErrorIs(t, err, ErrStopped)
		stopped := time.Now()

		b := start(t, m.Queue(), Config{})
		for range 3 {
			other := b.next(leaseLength)
			require.NotEqual(t, id(h), id(other))
			require.NoError(t, ack(t.Context(), m.Queue(), other))
			other.Release()
		}
		require.LessOrEqual(t, time.Since(stopped), leaseLength)

		time.Sleep(3 * leaseLength)
		select {
		case <-a.ended:
			t.Fatal("Run has returned although a message is in hand")
		default:
		}
		require.Equal(t, 3, m.Counts().LeasesEnded, "the one in hand is renewed while it is worked on")
		require.NoError(t, ack(t.Context(), m.Queue(), h))
		h.Release()
		require.NoError(t, <-a.ended)
		b.end()
	})
}

// The database does not answer when messages are given back at the stop. While something is in hand that may take until
// their leases end; after that Run waits for a moment and no longer.
func TestStopDoesNotWaitForWhatIsGivenBack(t *testing.T) {
	for name, c := range map[string]struct{ inHand, want time.Duration }{
		"nothing in hand":      {0, givePatience},
		"in hand for a moment": {givePatience / 2, givePatience},
		"in hand for longer":   {givePatience * 3 / 2, givePatience * 3 / 2},
		"in hand for long":     {leaseLength * 2, leaseLength},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				m := &neverTakesBack{Memory: memory(t), gaveUp: make(chan time.Time, 1)}
				q := queue.FromBackend(m)
				send(t, q, 1, 2)
				r := start(t, q, Config{LowWater: 10})
				h := r.next(time.Second)
				synctest.Wait()
				require.Equal(t, 1, r.Stats().Waiting)
				if c.inHand == 0 {
					h.Release()
				} else {
					time.AfterFunc(c.inHand, h.Release)
				}
				begun := time.Now()
				r.end()
				require.Equal(t, max(c.inHand, givePatience), time.Since(begun))
				require.Equal(t, c.want, (<-m.gaveUp).Sub(begun))
			})
		})
	}
}

// neverTakesBack does not answer when it is given something back.
type neverTakesBack struct {
	*queuetest.Memory
	gaveUp chan time.Time
}

func (q *neverTakesBack) Release(ctx context.Context, _ []backend.Delivery) error {
	<-ctx.Done()
	q.gaveUp <- time.Now()
	return ctx.Err()
}

// Whoever waits in Next when the receiver stops is sent away, and whoever comes later too.
func TestNextEndsWithRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, memory(t).Queue(), Config{})
		got := make(chan error)
		for range 3 {
			go func() {
				_, err := r.Next(t.Context())
				got <- err
			}()
		}
		synctest.Wait()
		r.end()
		for range 3 {
			require.ErrorIs(t, <-got, ErrStopped)
		}
		_, err := r.Next(t.Context())
		require.ErrorIs(t, err, ErrStopped)
		require.ErrorIs(t, r.Run(t.Context()), ErrRunning)
	})
}

// A Next that is given up takes no message with it.
func TestNextGivenUpLosesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		r := start(t, m.Queue(), Config{})
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan error, 1)
		go func() {
			_, err := r.Next(ctx)
			got <- err
		}()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-got, context.Canceled)
		_, err := r.Next(ctx)
		require.ErrorIs(t, err, context.Canceled)
		send(t, m.Queue(), 1)
		r.next(time.Second).Release()
		r.end()
	})
}

// A message that was handed to a Next just as it was given up goes to the next one.
func TestTakerThatLeavesPutsBack(t *testing.T) {
	t.Parallel()
	b := newBook(terms{length: time.Minute, margin: time.Second}, Config{HighWater: 10, MaxBytes: 1, MaxWait: time.Hour}, clock{boottime.Suspended})
	h := &taker{ready: make(chan struct{})}
	b.takers = append(b.takers, h)
	b.arrived(message(1), 0)
	require.NotNil(t, h.entry)
	require.Equal(t, 1, b.figures().InHand)

	b.mu.Lock()
	b.leaveLocked(h)
	b.mu.Unlock()
	s := b.figures()
	require.Equal(t, 0, s.InHand)
	require.Equal(t, 1, s.Waiting)
	require.Zero(t, s.HandedOut)
	e, err := b.take(t.Context())
	require.NoError(t, err)
	require.Same(t, h.entry, e)

	// And when the receiver has stopped meanwhile, it is let go.
	b.stop()
	b.mu.Lock()
	b.leaveLocked(&taker{entry: e})
	b.mu.Unlock()
	require.Equal(t, gone, e.place)
	require.Zero(t, b.figures().InHand)
}

// A logger that blocks delays nothing but the end of Run, for a moment; one that panics costs its line.
func TestBadLoggers(t *testing.T) {
	for name, h := range map[string]*badHandler{
		"blocks": {release: make(chan struct{})},
		"panics": {},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				if h.release != nil {
					h.release = make(chan struct{}) // of this bubble
					defer close(h.release)
				}
				m := memory(t)
				m.SetFault(queuetest.OpReceive, func(n int) queuetest.Fault {
					if n < 5 {
						return queuetest.Fault{Err: queuetest.Code(codes.Unavailable)}
					}
					return queuetest.Fault{}
				})
				send(t, m.Queue(), 1)
				r := start(t, m.Queue(), Config{Logger: slog.New(h)})
				held := r.next(5 * time.Second)
				time.Sleep(5 * leaseLength)
				require.Zero(t, m.Counts().LeasesEnded)
				held.Release()
				begun := time.Now()
				r.end()
				require.LessOrEqual(t, time.Since(begun), logPatience)
			})
		})
	}
}

type badHandler struct{ release chan struct{} }

func (h *badHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h *badHandler) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h *badHandler) WithGroup(string) slog.Handler            { return h }
func (h *badHandler) Handle(context.Context, slog.Record) error {
	if h.release == nil {
		panic("a logger's panic")
	}
	<-h.release
	return nil
}
