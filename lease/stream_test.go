package lease

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/boottime"
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
				require.InDelta(t, opened, r.Stats().StreamErrors, 1)

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

// A backlog is worked off: the list stays below the high mark and what will be started within a lease, the stream is closed
// above and opened again below, and no lease in the list ends.
func TestBacklog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const n = 3000
		m := memory(t)
		var ids []int64
		for i := range int64(n) {
			ids = append(ids, i)
		}
		send(t, m.Queue(), ids...)
		r := start(t, m.Queue(), Config{HighWater: 60})
		w := new(waiters).start(r, 10, 5*time.Millisecond) // 2000 a second
		most := 0
		for range 4000 {
			time.Sleep(time.Millisecond)
			most = max(most, r.Stats().Waiting)
		}
		require.Equal(t, n, w.count())
		queuetest.RequireEmpty(t, m.Queue())
		require.Less(t, most, 60+maxBatch)
		require.Greater(t, most, 30)
		s := r.Stats()
		require.Zero(t, s.Expired)
		require.Positive(t, s.StreamsClosed)
		require.Zero(t, m.Counts().LeasesEnded, "a stream is closed between two batches: nothing is on its way then")
		r.end()
		w.all.Wait()
	})
}

// A stream that has brought enough is closed when its batch ends, by whatever message; one whose batch does not end is closed
// too.
func TestStreamIsClosedWhenItsBatchEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		arrive func(b *book)
		closed bool
	}{
		"not enough":              {func(b *book) { b.arrived(lastOfBatch(1), 0) }, false},
		"enough, in a batch":      {func(b *book) { b.arrived(message(1), 0); b.arrived(message(2), 0) }, false},
		"enough, the batch ends":  {func(b *book) { b.arrived(message(1), 0); b.arrived(lastOfBatch(2), 0) }, true},
		"with one that was here":  {func(b *book) { b.arrived(message(1), 0); b.arrived(message(2), 0); b.arrived(lastOfBatch(2), 0) }, true},
		"a batch that is endless": {func(b *book) { arriveMany(b, 2+maxBatch) }, true},
		"nearly endless":          {func(b *book) { arriveMany(b, 2+maxBatch-1) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			closed := false
			config := Config{LowWater: 2, HighWater: 2, MaxBytes: 1000, MaxWait: time.Hour}
			b := newBook(terms{length: time.Minute, margin: time.Second}, config, clock{boottime.Suspended})
			b.opened(func() { closed = true })
			c.arrive(b)
			require.Equal(t, c.closed, closed)
		})
	}
}

func lastOfBatch(id int64) *queue.Message {
	m := message(id)
	m.LastOfBatch = true
	return m
}

func arriveMany(b *book, n int) {
	for i := range n {
		b.arrived(message(int64(i)), 0)
	}
}

// While it is not known how fast slots become free, Prefetch messages a slot are taken; when none does for a while they are
// let go, and then no more are taken than can be started.
func TestPrefetch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		var ids []int64
		for i := range int64(100) {
			ids = append(ids, i)
		}
		send(t, m.Queue(), ids...)
		r := start(t, m.Queue(), Config{Prefetch: 5})
		w := new(waiters).start(r, 10, 10*leaseLength)
		time.Sleep(time.Second)
		require.Equal(t, 10, r.Stats().InHand)
		// Five for each slot; fewer when the stream was full before all ten had come.
		require.GreaterOrEqual(t, r.Stats().Waiting, 20)
		require.LessOrEqual(t, r.Stats().Waiting, 52)
		time.Sleep(5 * leaseLength)
		require.Zero(t, r.Stats().Waiting)
		require.Positive(t, r.Stats().LetGo)
		r.end()
		w.all.Wait()
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

// A few large payloads are enough.
func TestBytesThatWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t)
		for i := range int64(20) {
			require.NoError(t, m.Queue().Send(t.Context(), []queue.Outgoing{{Key: spanner.Key{i}, Payload: make([]byte, 1000)}}))
		}
		r := start(t, m.Queue(), Config{LowWater: 20, MaxBytes: 3500, MaxWait: time.Hour})
		time.Sleep(time.Second)
		s := r.Stats()
		require.Equal(t, 4, s.Waiting)
		require.Equal(t, int64(4000), s.WaitingBytes)
		r.end()
	})
}
