package idempotencyhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/idempotency/idempotencyhttp"
)

// The cases of lost answers and of a database or another side that is away.

// unlike is created with another answer in each run, so that an answer that
// did not land shows.
func unlike(w *world) script {
	return func(rw http.ResponseWriter, r *http.Request, tx *spanner.ReadWriteTransaction) error {
		body, err := io.ReadAll(r.Body)
		require.NoError(w, err)
		require.Equal(w, first.body, string(body), "a later run does not get the whole request")
		rw.Header().Set("Location", fmt.Sprintf("/things/%d", w.runs.Load()))
		rw.WriteHeader(http.StatusCreated)
		_, err = fmt.Fprintf(rw, "run %d", w.runs.Load())
		return errors.Join(err, count(r.Context(), tx))
	}
}

func testLost(t *testing.T, m mode, do fault.Action, landed bool) {
	w := newWorld(t, m, settings{store: idempotency.Config{CommitTimeout: time.Second}})
	w.play(unlike(w))
	h := w.fault(fault.Rule{Method: "Commit", Tag: w.lastTag(), Nth: 1, Do: do})
	r := w.get(first)
	require.Equal(t, http.StatusCreated, r.status, r.body)
	require.Equal(t, 1, h.Applied())
	require.False(t, r.replayed())
	if landed {
		require.Equal(t, "run 1", r.body)
	} else {
		require.Equal(t, "run 2", r.body)
	}
	again := w.get(first)
	require.True(t, again.replayed())
	require.Equal(t, r.body, again.body)
	require.Equal(t, r.header.Get("Location"), again.header.Get("Location"))
	require.EqualValues(t, 1, w.effects())
}

func testCommitLost(t *testing.T, m mode) {
	for name, do := range map[string]fault.Action{
		"deadline":    fault.After(codes.DeadlineExceeded, "lost"),
		"internal":    fault.After(codes.Internal, "stream terminated by RST_STREAM"),
		"unavailable": fault.After(codes.Unavailable, "lost"),
		"forgotten":   fault.Forget(),
		"silence":     fault.Drop(),
	} {
		t.Run(name, func(t *testing.T) { testLost(t, m, do, true) })
	}
}

func testCommitNotLanded(t *testing.T, m mode) {
	for name, do := range map[string]fault.Action{
		"deadline": fault.Before(codes.DeadlineExceeded, "lost"),
		"unknown":  fault.Before(codes.Unknown, "lost"),
		"aborted":  fault.Abort(),
	} {
		t.Run(name, func(t *testing.T) { testLost(t, m, do, false) })
	}
}

// A handler in steps that has read a part of the body finds the rest in each run
// of its last step.
func TestLastStepFindsTheRestOfTheBody(t *testing.T) {
	t.Parallel()
	var rests []string
	w := newWorld(t, inSteps, settings{steps: func(r *http.Request, s *idempotencyhttp.Steps) error {
		if _, err := io.ReadFull(r.Body, make([]byte, 3)); err != nil {
			return err
		}
		return s.Complete(r.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction, rw http.ResponseWriter) error {
			rest, err := io.ReadAll(r.Body)
			rests = append(rests, string(rest))
			return errors.Join(err, count(ctx, tx))
		})
	}})
	w.fault(fault.Rule{Method: "Commit", Tag: w.lastTag(), Nth: 1, Do: fault.Abort()})
	require.Equal(t, http.StatusOK, w.get(call{key: "k", media: "text/plain", body: "one two"}).status)
	require.Equal(t, []string{" two", " two"}, rests)
	require.EqualValues(t, 1, w.effects())
}

// looks are the reads by which an outcome is found out: those without a
// transaction of their own.
func looks(c fault.Call) bool {
	r, ok := c.Request.(*spannerpb.ReadRequest)
	return ok && r.GetTransaction().GetSingleUse() != nil
}

func testUnresolved(t *testing.T, m mode) {
	w := newWorld(t, m, settings{store: idempotency.Config{CommitTimeout: time.Second}})
	lost := w.fault(fault.Rule{Method: "Commit", Tag: w.lastTag(), Do: fault.After(codes.Unknown, "lost")})
	blind := w.fault(fault.Rule{Method: "StreamingRead", Match: looks, Do: fault.Before(codes.PermissionDenied, "no reads here")})
	r := w.get(first)
	w.refusedWith(r, http.StatusServiceUnavailable, "unresolved")
	w.retryLater(r)
	require.Positive(t, blind.Applied())
	lost.Remove()
	blind.Remove()
	w.succeeded(w.get(first), true)
	require.EqualValues(t, 1, w.effects())
}

func testUnavailable(t *testing.T, m mode) {
	w := newWorld(t, m, settings{http: idempotencyhttp.Config{Wait: patience}})
	// The client asks again and again by itself; in steps the code is one that
	// it does not ask again for.
	code := codes.Unavailable
	if m != inTx {
		code = codes.ResourceExhausted
	}
	away := w.fault(fault.Rule{Match: func(c fault.Call) bool { return c.Method != "CreateSession" }, Do: fault.Before(code, "away")})
	r := w.get(first)
	w.refusedWith(r, http.StatusServiceUnavailable, "unavailable")
	w.retryLater(r)
	away.Remove()
	w.nothingWasKept()
}

func testUncertain(t *testing.T, m mode) {
	if m == inTx {
		t.Skip("a handler of mode Tx calls nothing outside")
	}
	calls, known := 0, false
	w := newWorld(t, m, settings{steps: func(r *http.Request, s *idempotencyhttp.Steps) error {
		id, err := idempotency.Outside[string]{
			Call: func(context.Context, string) (string, error) {
				calls++
				return "", idempotency.Uncertain(errors.New("timed out"))
			},
			Reconcile: func(context.Context, string) (string, bool, error) {
				if !known {
					return "", false, errors.New("the other side is away")
				}
				return "ch_1", true, nil
			},
		}.Step(r.Context(), s.Run, "charge")
		if err != nil {
			return err
		}
		return s.Complete(r.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction, rw http.ResponseWriter) error {
			_, err := io.WriteString(rw, id)
			return errors.Join(err, count(ctx, tx))
		})
	}})
	for range 3 {
		r := w.get(first)
		w.refusedWith(r, http.StatusServiceUnavailable, "uncertain")
		w.retryLater(r)
	}
	known = true
	for _, replayed := range []bool{false, true} {
		r := w.get(first)
		require.Equal(t, http.StatusOK, r.status, r.body)
		require.Equal(t, "ch_1", r.body)
		require.Equal(t, replayed, r.replayed())
	}
	require.Equal(t, 1, calls)
	require.EqualValues(t, 1, w.effects())
}

func testExpired(t *testing.T, m mode) {
	w := newWorld(t, m, settings{})
	w.play(func(rw http.ResponseWriter, r *http.Request, tx *spanner.ReadWriteTransaction) error {
		// The handler's own guard, here the counter.
		row, err := tx.ReadRow(r.Context(), "Counters", spanner.Key{"a"}, []string{"N"})
		if err != nil {
			return err
		}
		var n int64
		if err := row.Column(0, &n); err != nil {
			return err
		}
		if n > 0 {
			return fmt.Errorf("thing 7 is there: %w", idempotency.ErrExpired)
		}
		return created(rw, r, tx)
	})
	w.succeeded(w.get(first), false)
	w.expire()
	w.refusedWith(w.get(first), http.StatusGone, "expired")
	require.EqualValues(t, 1, w.effects())
}
