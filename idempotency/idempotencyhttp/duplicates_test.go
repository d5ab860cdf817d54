package idempotencyhttp_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/idempotency/idempotencyhttp"
	"github.com/spanqueue/spanqueue/schema"
)

// The cases of duplicates that come while the first request is at work.

// held makes the operation wait, once it is under way, until it is let go or
// its context ends: in its transaction in mode Tx, and in a call outside in
// mode Steps, since a local step would keep others away from the record.
func (w *world) held() (begun <-chan struct{}, let func()) {
	b, l := make(chan struct{}, 1), make(chan struct{})
	wait := func(ctx context.Context) error {
		select {
		case b <- struct{}{}:
		default:
		}
		select {
		case <-l:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if w.mode != inTx {
		w.hold.Store(&wait)
		return b, func() { close(l) }
	}
	w.play(func(rw http.ResponseWriter, r *http.Request, tx *spanner.ReadWriteTransaction) error {
		if err := wait(r.Context()); err != nil {
			return err
		}
		return created(rw, r, tx)
	})
	return b, func() { close(l) }
}

// patience is short for a wait that is to end, and long enough on a loaded
// machine for the requests that are not to wait at all.
const patience = 2 * time.Second

type outcome struct {
	reply
	err error
}

func (w *world) start(c call) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		r, err := w.do(c)
		done <- outcome{r, err}
	}()
	return done
}

// startAndAwait starts a request and returns when its operation is under way.
func (w *world) startAndAwait(c call, begun <-chan struct{}) <-chan outcome {
	w.Helper()
	done := w.start(c)
	select {
	case <-begun:
	case o := <-done:
		require.FailNow(w, "answered before it was under way", "%d %s %v", o.status, o.body, o.err)
	}
	return done
}

func testAtOnce(t *testing.T, m mode) {
	const copies = 20
	w := newWorld(t, m, settings{http: idempotencyhttp.Config{MaxWaiters: 8}})
	begun, let := w.held()
	outcomes := make(chan outcome, copies)
	for range copies {
		go func() {
			r, err := w.do(first)
			outcomes <- outcome{r, err}
		}()
	}
	<-begun
	// All who do not wait have their answer before the first has its own.
	want := map[mode]struct{ now, status, replays int }{
		inTx:      {copies - 1 - 8, http.StatusConflict, 8},
		inSteps:   {copies - 1, http.StatusConflict, 0},
		inPolling: {copies - 1, http.StatusAccepted, 0},
	}[m]
	locations := map[string]bool{}
	for range want.now {
		o := <-outcomes
		require.NoError(t, o.err)
		require.Equal(t, want.status, o.status, o.body)
		w.retryLater(o.reply)
		if want.status == http.StatusConflict {
			w.refusedWith(o.reply, http.StatusConflict, "in-progress")
		}
		locations[o.header.Get("Location")] = true
	}
	require.Len(t, locations, 1, "the duplicates were sent to different places")
	require.Zero(t, w.effects())
	let()
	replays := 0
	for range copies - want.now {
		o := <-outcomes
		require.NoError(t, o.err)
		w.succeeded(o.reply, o.replayed())
		if o.replayed() {
			replays++
		}
	}
	require.Equal(t, want.replays, replays)
	require.EqualValues(t, 1, w.effects())
	w.succeeded(w.get(first), true)
}

func testWaitOver(t *testing.T, m mode) {
	w := newWorld(t, m, settings{http: idempotencyhttp.Config{Wait: patience}})
	begun, let := w.held()
	done := w.startAndAwait(first, begun)
	r := w.get(first)
	if m == inPolling {
		require.Equal(t, http.StatusAccepted, r.status, r.body)
	} else {
		w.refusedWith(r, http.StatusConflict, "in-progress")
	}
	w.retryLater(r)
	// Another's request with the key is refused as such in the modes that do not wait.
	if m != inTx {
		w.refusedWith(w.get(call{key: "k1", body: "{}"}), http.StatusUnprocessableEntity, "key-reused")
	}
	let()
	o := <-done
	require.NoError(t, o.err)
	w.succeeded(o.reply, false)
	w.succeeded(w.get(first), true)
	require.EqualValues(t, 1, w.effects())
}

func testClientGone(t *testing.T, m mode) {
	w := newWorld(t, m, settings{})
	begun, let := w.held()
	c := first
	var hangUp context.CancelFunc
	c.ctx, hangUp = context.WithCancel(t.Context())
	done := w.startAndAwait(c, begun)
	hangUp()
	require.ErrorIs(t, (<-done).err, context.Canceled)
	if m == inTx {
		// Whoever comes next gets the turn as soon as the first has rolled back.
		w.play(created)
		w.succeeded(w.get(first), false)
		require.EqualValues(t, 1, w.effects())
		return
	}
	let()
	w.wait("the operation to be brought to its end", func() bool { return w.effects() == 1 })
	w.succeeded(w.get(first), true)
	require.EqualValues(t, 1, w.runs.Load())
	require.EqualValues(t, 1, w.effects())
}

// A duplicate whose own client goes away stops waiting, and its place is free.
func TestWaiterWhoseClientHasGoneStopsWaiting(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inTx, settings{http: idempotencyhttp.Config{MaxWaiters: 1}})
	begun, let := w.held()
	done := w.startAndAwait(first, begun)
	// Of two duplicates one is turned away; so the other one waits.
	waiting := func(hangUp bool) <-chan outcome {
		c := first
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		c.ctx = ctx
		a, b := w.start(c), w.start(c)
		var o outcome
		select {
		case o = <-a:
			a = b
		case o = <-b:
		}
		require.NoError(t, o.err)
		w.refusedWith(o.reply, http.StatusConflict, "in-progress")
		if hangUp {
			cancel()
		}
		return a
	}
	require.ErrorIs(t, (<-waiting(true)).err, context.Canceled)
	second := waiting(false) // needs the place that has become free
	let()
	o := <-done
	require.NoError(t, o.err)
	w.succeeded(o.reply, false)
	o = <-second
	require.NoError(t, o.err)
	w.succeeded(o.reply, true)
}

// Two processes: the duplicate waits for the record's lock, and no longer than
// Config.Wait.
func TestDuplicateInAnotherProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inTx, settings{})
	store, err := idempotency.New(w.db.Client(t), schema.Operations{}, idempotency.Config{Logger: quiet})
	require.NoError(t, err)
	mw, err := idempotencyhttp.New(store, idempotencyhttp.Config{Scope: w.scope, Wait: patience, Logger: quiet})
	require.NoError(t, err)
	other := &world{T: t, mode: inTx, db: w.db, spanner: w.spanner}
	other.blocked.Store("")
	other.play(created)
	other.serve(other.mount(mw, nil))

	begun, let := w.held()
	done := w.startAndAwait(first, begun)
	r := other.get(first)
	other.refusedWith(r, http.StatusServiceUnavailable, "unavailable")
	other.retryLater(r)
	let()
	o := <-done
	require.NoError(t, o.err)
	w.succeeded(o.reply, false)
	other.succeeded(other.get(first), true)
	require.EqualValues(t, 1, w.effects())
}

// A duplicate that comes while a local step is being committed waits for it,
// and no longer than Config.Wait.
func TestDuplicateDuringALocalStep(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inSteps, settings{http: idempotencyhttp.Config{Wait: patience}})
	begun, let := make(chan struct{}, 1), make(chan struct{})
	w.play(func(rw http.ResponseWriter, r *http.Request, tx *spanner.ReadWriteTransaction) error {
		begun <- struct{}{}
		<-let
		return created(rw, r, tx)
	})
	done := w.startAndAwait(first, begun)
	r := w.get(first)
	w.refusedWith(r, http.StatusServiceUnavailable, "unavailable")
	w.retryLater(r)
	close(let)
	o := <-done
	require.NoError(t, o.err)
	w.succeeded(o.reply, false)
	w.succeeded(w.get(first), true)
	require.EqualValues(t, 1, w.effects())
}
