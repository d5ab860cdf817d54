package lease

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuetest"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

func message(id int64) *queue.Message {
	return &queue.Message{Key: spanner.Key{id}, DeliverTime: time.Unix(id, 0), Lease: queue.Lease{Token: fmt.Sprint("t", id)}}
}

// waiters keeps n Next calls waiting, releases what they get, and counts it.
type waiters struct {
	mu    sync.Mutex
	calls int
	all   sync.WaitGroup
}

func (w *waiters) start(r *running, n int, each time.Duration) *waiters {
	for range n {
		w.all.Go(func() {
			for {
				h, err := r.Next(r.t.Context())
				if err != nil {
					return
				}
				time.Sleep(each)
				if err := ack(r.t.Context(), r.queue, h); err == nil {
					w.mu.Lock()
					w.calls++
					w.mu.Unlock()
				}
				h.Release()
			}
		})
	}
	return w
}

func (w *waiters) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls
}

// Streams that fail are opened again after growing, jittered pauses, and Run goes on.
func TestStreamsThatFail(t *testing.T) {
	for _, c := range []struct {
		code            codes.Code
		atLeast, atMost int // streams in a minute
	}{
		{codes.Unavailable, 10, 25},
		{codes.ResourceExhausted, 8, 16},
		{codes.NotFound, 10, 25},
		{codes.PermissionDenied, 10, 25},
	} {
		t.Run(c.code.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				m := memory(t)
				m.SetFault(queuetest.OpReceive, queuetest.Always(queuetest.Fault{Err: queuetest.Code(c.code)}))
				r := start(t, m.Queue(), Config{})
				w := new(waiters).start(r, 10, 0)
				time.Sleep(time.Minute)
				opened := r.Stats().Streams
				require.GreaterOrEqual(t, opened, int64(c.atLeast))
				require.LessOrEqual(t, opened, int64(c.atMost))
				require.Equal(t, opened, r.Stats().StreamErrors)

				m.SetFault(queuetest.OpReceive, nil)
				send(t, m.Queue(), 1)
				time.Sleep(maxPause)
				require.Equal(t, 1, w.count(), "Run has gone on")
				r.end()
				w.all.Wait()
			})
		})
	}
}

// A stream that breaks after each message is opened again at once or nearly: it does make progress.
func TestStreamThatBreaksAfterEachMessage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		m.SetFault(queuetest.OpRow, func(n int) queuetest.Fault {
			if n%2 == 0 {
				return queuetest.Fault{Err: queuetest.Code(codes.Unavailable)}
			}
			return queuetest.Fault{}
		})
		send(t, m.Queue(), 1, 2, 3, 4, 5, 6, 7, 8)
		r := start(t, m.Queue(), Config{})
		w := new(waiters).start(r, 4, 0)
		time.Sleep(8 * leaseLength) // the row that breaks a stream waits out its lease
		require.Equal(t, 8, w.count())
		queuetest.RequireEmpty(t, m.Queue())
		r.end()
		w.all.Wait()
	})
}

// A stream that ends at once and without an error, time and again, is not opened in a hot loop.
func TestStreamThatEndsEarly(t *testing.T) {
	t.Parallel()
	for random := 0.0; random <= 1; random += 0.25 {
		require.GreaterOrEqual(t, pauseAfter(1, false, random), firstPause/2)
	}
	bubble := func(t *testing.T) {
		m := &endsAtOnce{Memory: memory(t)}
		r := start(t, queue.FromBackend(m), Config{})
		w := new(waiters).start(r, 10, 0)
		time.Sleep(time.Minute)
		require.LessOrEqual(t, r.Stats().Streams, int64(25))
		r.end()
		w.all.Wait()
	}
	synctest.Test(t, bubble)
}

// A stream that stalls is given up when its time and the slack are over.
func TestStreamThatStalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		m.Nth(queuetest.OpReceive, 1, queuetest.Fault{Stall: true})
		send(t, m.Queue(), 1)
		r := start(t, m.Queue(), Config{MaxDuration: time.Minute, LowWater: 10})
		begun := time.Now()
		w := new(waiters).start(r, 10, 0)
		time.Sleep(50 * time.Second)
		require.Zero(t, w.count())
		time.Sleep(time.Minute + slack + maxPause - 50*time.Second)
		require.Equal(t, 1, w.count(), "after %v", time.Since(begun))
		require.Equal(t, int64(1), r.Stats().StreamErrors)
		r.end()
		w.all.Wait()
	})
}

// An idle queue costs a stream every two minutes, less a random tenth; with few slots one every five seconds.
func TestIdleStreams(t *testing.T) {
	for slots, bounds := range map[int][2]int64{10: {30, 35}, 1: {720, 820}} {
		t.Run(fmt.Sprint(slots), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := start(t, memory(t).Queue(), Config{})
				w := new(waiters).start(r, slots, 0)
				time.Sleep(time.Hour)
				s := r.Stats()
				require.GreaterOrEqual(t, s.Streams, bounds[0])
				require.LessOrEqual(t, s.Streams, bounds[1])
				require.Zero(t, s.StreamErrors)
				require.Zero(t, s.StreamsClosed)
				r.end()
				w.all.Wait()
			})
		})
	}
}

// Only streams that ended by an error that nobody here wanted are counted as errors: not the one that the end of Run closes,
// nor one that is closed because enough is here.
func TestStreamsThatWereClosedAreNoErrors(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		r := start(t, m.Queue(), Config{LowWater: 4, MaxWait: time.Hour})
		send(t, m.Queue(), 1, 2, 3, 4)
		time.Sleep(time.Second)
		s := r.Stats()
		require.Equal(t, int64(1), s.StreamsClosed, "enough is here")
		require.Zero(t, s.StreamErrors)

		w := new(waiters).start(r, 4, 0)
		time.Sleep(time.Second)
		opened := r.Stats().Streams
		require.Greater(t, opened, int64(1), "one is open when Run ends")
		r.end()
		w.all.Wait()
		s = r.Stats()
		require.Equal(t, opened, s.Streams)
		require.Equal(t, int64(1), s.StreamsClosed)
		require.Zero(t, s.StreamErrors)
	})
}

// A stream that ends by itself is followed by the next one, however many wait, as long as more are wanted.
func TestStreamsFollowEachOther(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		r := start(t, m.Queue(), Config{LowWater: 10, MaxDuration: time.Second, MaxWait: time.Hour})
		send(t, m.Queue(), 1, 2, 3, 4, 5, 6)
		time.Sleep(5 * time.Second)
		send(t, m.Queue(), 7, 8)
		time.Sleep(time.Second)
		require.Equal(t, 8, r.Stats().Waiting)
		require.Zero(t, r.Stats().StreamsClosed)
		r.end()
	})
}
