package lease

import (
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/internal/boottime"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/queue/queuetest"
	"github.com/stretchr/testify/require"
)

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
