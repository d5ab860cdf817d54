package queue_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/front"
	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/spanqueue/spanqueue/schema"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// receiver is a stream that is read in the background.
type receiver struct {
	t        testing.TB
	messages chan *queue.Message
	stop     context.CancelFunc
	ended    chan struct{}
	err      error // once ended is closed
}

// open opens a stream and returns once it is there.
func (w *world) open(o queue.ReceiveOptions) *receiver {
	w.t.Helper()
	arrived := w.fault(fault.Rule{SQL: "RECEIVE_" + w.queue.Name(), Do: fault.Delay(0)})
	r := w.openUnseen(o)
	waitCtx, done := context.WithTimeout(w.t.Context(), patience)
	defer done()
	require.NoError(w.t, arrived.Wait(waitCtx))
	arrived.Remove()
	return r
}

// openUnseen opens a stream and returns at once.
func (w *world) openUnseen(o queue.ReceiveOptions) *receiver {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &receiver{t: w.t, messages: make(chan *queue.Message, 10_000), stop: cancel, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		for m, err := range w.queue.Receive(ctx, o) {
			if err != nil {
				r.err = err
				return
			}
			r.messages <- m
		}
	}()
	w.t.Cleanup(func() {
		cancel()
		<-r.ended
	})
	return r
}

func (r *receiver) next() *queue.Message {
	r.t.Helper()
	select {
	case m := <-r.messages:
		return m
	case <-r.ended:
		r.t.Fatalf("the stream has ended: %v", r.err)
	case <-time.After(patience):
		r.t.Fatal("nothing came")
	}
	return nil
}

// none asserts that nothing comes for so long.
func (r *receiver) none(d time.Duration) {
	r.t.Helper()
	select {
	case m := <-r.messages:
		r.t.Fatalf("%v came", m)
	case <-r.ended:
		r.t.Fatalf("the stream has ended: %v", r.err)
	case <-time.After(d):
	}
}

// end waits for the stream's end and returns its error.
func (r *receiver) end() error {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(patience):
		r.t.Fatal("the stream does not end")
	}
	return r.err
}

func TestReceiveTellsAllOfAMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, schema.Queue{
		Name:       "Mails",
		KeyColumns: []schema.Column{{Name: "Id", Type: schema.Int64(), NotNull: true}, {Name: "Customer", Type: schema.String(20)}},
		PrimaryKey: []schema.KeyPart{{Column: "Customer"}, {Column: "Id", Desc: true}},
		Payload:    schema.String(schema.Max),
	})
	require.NoError(t, w.queue.Send(t.Context(), []queue.Outgoing{{Key: spanner.Key{"alice", 7}, Payload: []byte("hello")}}))
	m := w.receive(1)[0]
	require.Equal(t, spanner.Key{"alice", int64(7)}, m.Key, "in the order of the primary key")
	require.Equal(t, "hello", string(m.Payload))
	require.Equal(t, w.stored(m.Key).DeliverTime, m.DeliverTime)
	require.NotEmpty(t, m.Lease.Token)
	require.WithinDuration(t, m.DeliverTime.Add(10*time.Second), m.Lease.End, 5*time.Second)
	require.True(t, m.LastOfBatch, "the only message is the last of its batch")
	require.Zero(t, m.Attempt)
	for name, want := range map[string]any{"Customer": "alice", "customer": "alice", "ID": int64(7)} {
		part, ok := m.Column(name)
		require.True(t, ok)
		require.Equal(t, want, part)
	}
	_, ok := m.Column("Payload")
	require.False(t, ok)
	require.Contains(t, m.String(), `("alice",7)`)
	require.NotContains(t, m.String(), "hello", "payloads do not belong in logs")
}

func TestReceiveFromAnEmptyQueueEndsByItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	began := time.Now()
	for m, err := range w.queue.Receive(t.Context(), queue.ReceiveOptions{MaxDuration: time.Second}) {
		t.Fatalf("%v came, %v", m, err)
	}
	require.GreaterOrEqual(t, time.Since(began), time.Second)
	require.Less(t, time.Since(began), patience)
}

// A message comes while the stream is open, not when it ends.
func TestReceiveWhileOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	r := w.open(queue.ReceiveOptions{MaxDuration: time.Hour})
	for _, id := range []string{"m1", "m2"} {
		w.send(id)
		require.Equal(t, spanner.Key{id}, r.next().Key)
	}
}

func TestReceiveIsLeftEarly(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, tasks, front.Options{LeaseLength: 300 * time.Millisecond})
	w.send("m1", "m2", "m3")
	require.Len(t, w.receive(1), 1)
	// What was on its way comes again when its lease ends, and so does what nobody acknowledged.
	r := w.open(queue.ReceiveOptions{})
	seen := make(map[string]bool)
	for len(seen) < 3 {
		seen[r.next().Key.String()] = true
	}
	require.EqualValues(t, 3, w.count())
}

func TestReceiveEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	w.send("m1")
	r := w.open(queue.ReceiveOptions{MaxDuration: time.Hour})
	r.next()
	r.stop()
	err := r.end()
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "receive from Tasks")

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for m, err := range w.queue.Receive(ctx, queue.ReceiveOptions{}) {
		require.Nil(t, m)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
}

// A stream that falls silent, because the client asks again and again unseen, is given up 10 s after its end.
func TestReceiveGivesASilentStreamUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	h := w.fault(fault.Rule{SQL: "RECEIVE_Tasks", Do: fault.Hold()})
	r := w.openUnseen(queue.ReceiveOptions{MaxDuration: time.Second})
	began := time.Now()
	err := r.end()
	require.ErrorContains(t, err, "was to end after 1s and did not: given up")
	require.GreaterOrEqual(t, time.Since(began), 10*time.Second)
	require.Equal(t, 1, h.Applied())
}

func TestReceiveYieldsItsErrorLast(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	h := w.fault(fault.Rule{SQL: "RECEIVE_Tasks", Nth: 1, Do: fault.Before(codes.PermissionDenied, "no EXECUTE")})
	var errs []error
	for m, err := range w.queue.Receive(t.Context(), queue.ReceiveOptions{}) {
		require.Nil(t, m)
		errs = append(errs, err)
	}
	require.Len(t, errs, 1)
	require.Equal(t, codes.PermissionDenied, spanner.ErrCode(errs[0]))
	require.Equal(t, 1, h.Applied())
}

func TestReceiveRefusesBadOptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	for says, o := range map[string]queue.ReceiveOptions{
		"MaxDuration is 999ms":     {MaxDuration: 999 * time.Millisecond},
		"MaxDuration is -1s":       {MaxDuration: -time.Second},
		"MaxDuration is 24h0m0.1s": {MaxDuration: 24*time.Hour + 100*time.Millisecond},
		"MaxBatch is -1":           {MaxBatch: -1},
		"MaxBatch is 1001":         {MaxBatch: 1001},
	} {
		yielded := 0
		for m, err := range w.queue.Receive(t.Context(), o) {
			yielded++
			require.Nil(t, m)
			require.ErrorIs(t, err, queue.ErrInvalid)
			require.ErrorContains(t, err, says)
		}
		require.Equal(t, 1, yielded)
	}
}

// The options reach the database, durations rounded up.
func TestReceiveOptionsReachTheDatabase(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tasks)
	for sql, o := range map[string]queue.ReceiveOptions{
		"RECEIVE_Tasks(max_duration => '120s')":                       {},
		"RECEIVE_Tasks(max_duration => '2s')":                         {MaxDuration: 1001 * time.Millisecond},
		"RECEIVE_Tasks(max_duration => '86400s', max_batch_size => 7": {MaxDuration: 24 * time.Hour, MaxBatch: 7},
	} {
		h := w.fault(fault.Rule{Match: func(c fault.Call) bool { return strings.Contains(c.SQL, sql) }, Nth: 1,
			Do: fault.Before(codes.FailedPrecondition, "seen")})
		for _, err := range w.queue.Receive(t.Context(), o) {
			require.Equal(t, codes.FailedPrecondition, spanner.ErrCode(err))
		}
		require.Equal(t, 1, h.Applied(), sql)
	}
}
