package table

import (
	"context"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
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

func TestReleaseGivesBackAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	q := w.bare(Options{LeaseLength: long})
	w.send(q, ids(3)...)
	ds := w.take(q, 3)
	require.NoError(t, ack(t.Context(), q, ds[1]))
	require.ErrorIs(t, q.Release(t.Context(), ds), backend.ErrNotHeld, "one of them was gone")
	require.ErrorIs(t, q.Release(t.Context(), ds[:1]), backend.ErrNotHeld)
	again := w.takeNow(q)
	require.Len(t, again, 2, "the others were given back all the same")
	for _, d := range again {
		require.Equal(t, &backend.Record{}, d.Record, "a release takes the attempt back")
		require.ErrorIs(t, ack(t.Context(), q, ds[0]), backend.ErrNotHeld)
		require.NoError(t, ack(t.Context(), q, d))
	}
}

// An attempt is taken back once, whether by Release, by TakeBack, or by both.
func TestAttemptsAreTakenBackOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	q := w.bare(Options{LeaseLength: soon})
	attempts := func() int64 {
		r, _ := w.find(q, "m1")
		return r.attempts
	}
	w.send(q, "m1")
	w.take(q, 1)      // the first claim comes to nothing
	d := w.take(q, 1) // its lease has ended
	require.Equal(t, 1, d[0].Record.Starts)
	require.False(t, d[0].Record.First.IsZero())
	require.EqualValues(t, 2, attempts())
	require.NoError(t, q.TakeBack(t.Context(), d[0]))
	require.EqualValues(t, 1, attempts())
	require.NoError(t, q.TakeBack(t.Context(), d[0]))
	require.NoError(t, q.Release(t.Context(), d))
	require.EqualValues(t, 1, attempts())
	r, _ := w.find(q, "m1")
	require.True(t, r.first.Valid, "there was a first attempt")
}

// What the processor writes down of a message that failed or was put off is what its next delivery shows.
func TestRecordsAreKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	q := w.bare(Options{LeaseLength: long})
	w.send(q, "m1")
	due := time.Time{}
	resend := func(r backend.Record) (first spanner.NullTime, next backend.Record) {
		d := w.take(q, 1)[0]
		known, err := q.Begin(t.Context(), []backend.Delivery{d})
		require.NoError(t, err)
		require.Equal(t, []backend.Record{*d.Record}, known)
		before, _ := w.find(q, "m1")
		due = d.DeliverTime.Add(time.Microsecond)
		require.NoError(t, q.RunTx(t.Context(), backend.TxOptions{}, func(ctx context.Context, tx backend.Tx) error {
			if err := tx.Ack(ctx, d); err != nil {
				return err
			}
			out := backend.Outgoing{Key: d.Key, Payload: d.Payload, DeliverTime: due}
			if err := tx.Send(ctx, out); err != nil {
				return err
			}
			return tx.(backend.LedgerTx).Keep(ctx, out, r)
		}))
		return before.first, *w.peekRecord(q, "m1")
	}
	_, next := resend(backend.Record{Deferrals: 1})
	require.Equal(t, backend.Record{Deferrals: 1}, next, "a deferral is no attempt")
	first, next := resend(backend.Record{Deferrals: 1, Failures: 1})
	require.Equal(t, backend.Record{Deferrals: 1, Failures: 1, First: first.Time}, next)
	_, next = resend(backend.Record{Deferrals: 1, Failures: 2, First: first.Time})
	require.Equal(t, backend.Record{Deferrals: 1, Failures: 2, First: first.Time}, next)
	_, next = resend(backend.Record{Deferrals: 2, Failures: 2, Starts: 1, First: first.Time})
	require.Equal(t, backend.Record{Deferrals: 2, Failures: 2, Starts: 1, First: first.Time}, next)
}

// peekRecord claims the message, returns what is known of its earlier deliveries, and gives it back.
func (w *world) peekRecord(q *Queue, id string) *backend.Record {
	w.t.Helper()
	d := w.take(q, 1)[0]
	require.Equal(w.t, id, d.Key[0])
	require.NoError(w.t, q.Release(w.t.Context(), []backend.Delivery{d}))
	return d.Record
}

func TestRenewKeepsTheToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	count := newRPCs()
	q := w.open(w.db.Bare(t, count.options()...), Options{LeaseLength: long})
	w.send(q, ids(50)...)
	ds := w.take(q, 50)
	require.NoError(t, ack(t.Context(), q, ds[7]))
	var tokens []string
	for _, d := range ds {
		tokens = append(tokens, d.Token)
	}
	count.reset()
	past, _ := q.clock.past()
	answers, err := q.Renew(t.Context(), append(tokens, "nonsense", "abc.AAAA"))
	require.NoError(t, err)
	require.Equal(t, 2, count.total(), "one read and one commit for all of them: %v", count)
	require.Len(t, answers, 49)
	for i, d := range ds {
		a, ok := answers[d.Token]
		require.Equal(t, i != 7, ok)
		if !ok {
			continue
		}
		require.Equal(t, d.Token, a.Token)
		require.False(t, a.LeaseEnd.Before(past.Add(long)), "a full lease from the renewal on")
		r, _ := w.find(q, d.Key[0].(string))
		require.True(t, r.visible.Equal(a.LeaseEnd))
		require.True(t, r.due.Equal(d.DeliverTime))
		require.NoError(t, ack(t.Context(), q, d), "an acknowledgement that was under way still holds")
	}
}

// A lease that was renewed is not given to others, for as long as it is renewed.
func TestRenewedLeaseLasts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	q, other := w.bare(Options{LeaseLength: soon}), w.bare(Options{LeaseLength: soon, PollInterval: 20 * time.Millisecond})
	w.send(q, "m1")
	d := w.take(q, 1)[0]
	received := make(chan backend.Delivery, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() {
		defer close(received)
		for d, err := range other.Receive(ctx, backend.ReceiveRequest{MaxDuration: patience}) {
			if err == nil {
				received <- d
			}
			return
		}
	}()
	began := time.Now()
	ticks := time.NewTicker(soon / 4)
	defer ticks.Stop()
	for time.Since(began) < 3*soon {
		answers, err := q.Renew(t.Context(), []string{d.Token})
		require.NoError(t, err)
		require.Len(t, answers, 1)
		select {
		case <-received:
			t.Fatal("a renewed lease was given away")
		case <-ticks.C:
		}
	}
	ended := time.Now()
	select {
	case got := <-received:
		require.NotEqual(t, d.Token, got.Token)
		require.GreaterOrEqual(t, time.Since(ended), soon/2, "not before its end")
	case <-time.After(patience):
		t.Fatal("a lease that is not renewed any more ends")
	}
}

// F16: a resend is one transaction; what the message keeps, it keeps.
func TestF16ResendIsOneCommit(t *testing.T) {
	t.Parallel()
	for name, action := range map[string]fault.Action{
		"before the commit":      fault.Abort(),
		"during it, reply lost":  fault.After(codes.Unknown, "who knows"),
		"client runs it again":   fault.After(codes.Internal, "stream terminated by RST_STREAM with error code: INTERNAL_ERROR"),
		"right after the commit": fault.DelayReply(50 * time.Millisecond),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := plain()
			s.Priorities = 3
			w := newWorld(t, s)
			q := w.front(Options{LeaseLength: long})
			m := message("m1")
			m.Priority = 2
			require.NoError(t, q.Send(t.Context(), []backend.Outgoing{m}))
			d := w.take(q, 1)[0]
			now, err := q.ServerTime(t.Context())
			require.NoError(t, err)
			due := now.Add(time.Second)
			h := w.fault(fault.Rule{Method: "Commit", Tag: "resend", Nth: 1, Do: action})
			left := func() {
				r, there := w.find(q, "m1")
				require.True(t, there, "at every moment one is left")
				require.True(t, r.due.Equal(d.DeliverTime) || r.due.Equal(due))
			}
			left()
			err = q.RunTx(t.Context(), backend.TxOptions{Tag: "resend"}, func(ctx context.Context, tx backend.Tx) error {
				if err := tx.Ack(ctx, d); err != nil {
					return err
				}
				return tx.Send(ctx, backend.Outgoing{Key: d.Key, Payload: []byte("next"), DeliverTime: due})
			})
			w.applied(h)
			left()
			if err != nil { // the caller does not know: the probe says that it was settled
				p, err := q.Probe(t.Context(), d)
				require.NoError(t, err)
				require.Equal(t, backend.Moved, p)
			}
			require.Empty(t, w.takeNow(q))
			again := w.take(q, 1)[0]
			past, _ := q.clock.past()
			require.False(t, past.Before(due), "received before it was due")
			require.True(t, again.DeliverTime.Equal(due))
			require.Equal(t, "next", string(again.Payload))
			require.Equal(t, 2, again.Priority)
			require.Equal(t, 1, again.Record.Starts, "the history is kept")
		})
	}
}

// F13: the commit of finished work outlives the stop of the receiver.
func TestF13StopDoesNotTouchWhatIsHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain(), effectsTable)
	q := w.bare(Options{LeaseLength: long})
	w.send(q, ids(2)...)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var held []backend.Delivery
	for d, err := range q.Receive(ctx, backend.ReceiveRequest{MaxDuration: patience, MaxBatch: 1}) {
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
			break
		}
		held = append(held, d)
		stop()
	}
	require.Len(t, held, 1)
	require.NoError(t, work(t.Context(), q, held[0]))
	require.EqualValues(t, 1, w.effects(q, held[0].Key[0].(string)))
	_, there := w.find(q, held[0].Key[0].(string))
	require.False(t, there)
}

func TestTransactionThatIsHeldByHand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	q := w.bare(Options{LeaseLength: long})
	w.send(q, "m1")
	d := w.take(q, 1)[0]
	tx, err := spanner.NewReadWriteStmtBasedTransaction(t.Context(), q.client)
	require.NoError(t, err)
	require.NoError(t, q.Ack(t.Context(), tx, d))
	_, err = tx.Commit(t.Context())
	require.NoError(t, err)
	_, there := w.find(q, "m1")
	require.False(t, there)
}
