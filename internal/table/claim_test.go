package table

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/internal/backend"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// A claim whose answer is lost is read back by its token: what it took is handed out, once, and counted once.
func TestClaimOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	for name, action := range map[string]fault.Action{
		"no answer":            fault.Drop(),
		"answer held":          fault.HoldReply(),
		"deadline":             fault.After(codes.DeadlineExceeded, "too late"),
		"cancelled":            fault.After(codes.Canceled, "cancelled"),
		"unavailable":          fault.After(codes.Unavailable, "try again"),
		"stream reset":         fault.After(codes.Internal, "stream terminated by RST_STREAM with error code: INTERNAL_ERROR"),
		"internal":             fault.After(codes.Internal, "something broke"),
		"unknown":              fault.After(codes.Unknown, "who knows"),
		"server restarted":     fault.Forget(),
		"connection cut":       fault.CutReply(),
		"aborted":              fault.Abort(),
		"did not land":         fault.Before(codes.Unknown, "who knows"),
		"did not get there":    fault.Before(codes.Internal, "something broke"),
		"connection cut early": fault.Cut(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, plain())
			q := w.front(Options{LeaseLength: long})
			w.send(q, ids(5)...)
			h := w.fault(fault.Rule{Method: "Commit", Tag: "claim=T", Nth: 1, Do: action})
			ds := w.take(q, 5)
			w.applied(h)
			h.Release()
			require.Equal(t, ids(5), sortedKeys(ds))
			for _, d := range ds {
				r, there := w.find(q, d.Key[0].(string))
				require.True(t, there)
				require.True(t, r.holds(d), "what is handed out is held: %+v, %+v", r, d)
				require.EqualValues(t, 1, r.attempts)
				require.Equal(t, &backend.Record{}, d.Record)
				require.NoError(t, ack(t.Context(), q, d))
			}
		})
	}
}

// Many claim from one queue at the same time: every message is granted once.
func TestManyClaimersTakeEachMessageOnce(t *testing.T) {
	t.Parallel()
	for _, shards := range []int{0, 4} {
		s := plain()
		s.Shards = shards
		w := newWorld(t, s)
		const n = 120
		w.send(w.bare(Options{}), ids(n)...)
		ctx, done := context.WithTimeout(t.Context(), patience)
		var mu sync.Mutex
		var all []backend.Delivery
		var claimers sync.WaitGroup
		for i := range 6 {
			q := w.bare(Options{LeaseLength: long})
			if i%2 == 1 {
				q = w.front(Options{LeaseLength: long})
			}
			claimers.Go(func() {
				for d, err := range q.Receive(ctx, backend.ReceiveRequest{MaxDuration: patience, MaxBatch: 7}) {
					if err != nil {
						if ctx.Err() == nil {
							t.Error(err)
						}
						return
					}
					mu.Lock()
					if all = append(all, d); len(all) == n {
						done()
					}
					mu.Unlock()
				}
			})
		}
		claimers.Wait()
		done()
		require.Equal(t, ids(n), sortedKeys(all))
		require.Empty(t, w.takeNow(w.bare(Options{})))
	}
}

// What is no longer due when the claim has its locks is dropped.
func TestClaimDropsWhatOthersTook(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	q, other := w.bare(Options{LeaseLength: long}), w.bare(Options{LeaseLength: long})
	w.send(q, ids(4)...)
	seen, err := q.look(t.Context(), 10, false)
	require.NoError(t, err)
	require.Len(t, seen.due, 4)
	theirs := w.take(other, 2)
	require.NoError(t, ack(t.Context(), other, theirs[0]))

	got, err := q.claim(t.Context(), seen.due, seen.past)
	require.NoError(t, err)
	require.Equal(t, 2, got.lost)
	require.Len(t, got.granted, 2)
	require.NotContains(t, keys(got.granted), theirs[0].Key[0])
	require.NotContains(t, keys(got.granted), theirs[1].Key[0])
	r, _ := w.find(q, theirs[1].Key[0].(string))
	require.True(t, r.holds(theirs[1]))
	require.EqualValues(t, 1, r.attempts)
}

// An end of the receiver while its claim is at the commit: what was claimed is given back, and its attempts with it.
func TestStopInTheMiddleOfAClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	q := w.front(Options{LeaseLength: long})
	w.send(q, ids(3)...)
	h := w.fault(fault.Rule{Method: "Commit", Tag: "claim=T", Nth: 1, Do: fault.DelayReply(200 * time.Millisecond)})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		for d, err := range q.Receive(ctx, backend.ReceiveRequest{MaxDuration: patience}) {
			if err == nil {
				t.Errorf("a message was handed out after the stop: %v", d.Key)
			}
			ended <- err
		}
	}()
	w.applied(h) // the claim has been committed
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)
	for _, id := range ids(3) {
		r, _ := w.find(q, id)
		require.Empty(t, r.claim)
		require.Zero(t, r.attempts)
		require.False(t, r.first.Valid)
	}
	require.Len(t, w.takeNow(w.bare(Options{LeaseLength: long})), 3, "others may have them at once, though the lease would last a minute")
}

// A receiver that takes one message of a batch and leaves gives back the others; the one it took it keeps.
func TestLeavingTheLoopGivesBackTheRest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	q := w.bare(Options{LeaseLength: long})
	w.send(q, ids(5)...)
	var mine backend.Delivery
	for d, err := range q.Receive(t.Context(), backend.ReceiveRequest{MaxDuration: patience, MaxBatch: 5}) {
		require.NoError(t, err)
		mine = d
		break
	}
	rest := w.takeNow(q)
	require.Len(t, rest, 4)
	require.NotContains(t, keys(rest), mine.Key[0])
	for _, d := range rest {
		require.Equal(t, 0, d.Record.Starts, "it was nobody's attempt")
	}
	require.NoError(t, ack(t.Context(), q, mine))
}

// F09: messages age in hand. A slow reader is not given a message whose lease is half over; each is worked on once.
func TestF09SlowReaderStartsNothingOnAnOldLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(), effectsTable)
	slow, other := w.front(Options{LeaseLength: time.Second}), w.front(Options{LeaseLength: time.Second})
	w.send(slow, ids(5)...)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var calls sync.Map
	count := func(d backend.Delivery) {
		if _, again := calls.LoadOrStore(d.Key[0], true); again {
			t.Errorf("%v was started twice", d.Key)
		}
	}
	var readers sync.WaitGroup
	for _, q := range []*Queue{slow, other} {
		readers.Go(func() {
			for d, err := range q.Receive(ctx, backend.ReceiveRequest{MaxDuration: patience, MaxBatch: 5}) {
				if err != nil {
					return
				}
				count(d)
				if q == slow {
					timer := time.NewTimer(600 * time.Millisecond)
					<-timer.C
				}
				if err := work(ctx, q, d); err != nil {
					t.Errorf("%v: %v", d.Key, err)
				}
			}
		})
	}
	wait(t, "all messages to be worked on", func() bool {
		stats, err := other.Stats(t.Context())
		return err == nil && stats.Ready == 0
	})
	stop()
	readers.Wait()
	for _, id := range ids(5) {
		require.EqualValues(t, 1, w.effects(other, id))
	}
}

// peekRecord claims the message, returns what is known of its earlier deliveries, and gives it back.
func (w *world) peekRecord(q *Queue, id string) *backend.Record {
	w.t.Helper()
	d := w.take(q, 1)[0]
	require.Equal(w.t, id, d.Key[0])
	require.NoError(w.t, q.Release(w.t.Context(), []backend.Delivery{d}))
	return d.Record
}
