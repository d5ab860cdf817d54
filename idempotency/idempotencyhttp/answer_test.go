package idempotencyhttp_test

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/idempotency/idempotencyhttp"
)

// The cases of what a handler answers.

func testFirst(t *testing.T, m mode) {
	w := newWorld(t, m, settings{})
	r := w.get(first)
	w.succeeded(r, false)
	require.Equal(t, "session=secret", r.header.Get("Set-Cookie"))
	require.Equal(t, "own", r.header.Get("X-Own"))
	require.EqualValues(t, 1, w.effects())
	require.EqualValues(t, 1, w.records())
}

func testReplay(t *testing.T, m mode) {
	w := newWorld(t, m, settings{})
	w.succeeded(w.get(first), false)
	began := time.Now().Add(-time.Second).Truncate(time.Second)
	for range 3 {
		r := w.get(first)
		w.succeeded(r, true)
		date, err := http.ParseTime(r.header.Get("Date"))
		require.NoError(t, err)
		require.False(t, date.Before(began), "Date is not that of the replay")
	}
	require.EqualValues(t, 1, w.effects())
	require.EqualValues(t, 1, w.runs.Load())

	// Other headers, when they are chosen; and a body that is not text.
	w = newWorld(t, m, settings{http: idempotencyhttp.Config{Headers: []string{"x-own"}}})
	w.play(func(rw http.ResponseWriter, _ *http.Request, _ *spanner.ReadWriteTransaction) error {
		rw.Header()["X-Own"] = []string{"1", "2"}
		rw.Header().Set("Content-Encoding", "x-packed")
		rw.Header().Set("ETag", `"v1"`)
		_, err := rw.Write([]byte("\n\x00\xff\n"))
		return err
	})
	w.get(first)
	r := w.get(first)
	require.Equal(t, []string{"1", "2"}, r.header["X-Own"])
	require.Equal(t, "x-packed", r.header.Get("Content-Encoding"), "the body cannot be read without it")
	require.Empty(t, r.header.Get("ETag"))
	require.Equal(t, "\n\x00\xff\n", r.body)
	require.Equal(t, "application/octet-stream", r.header.Get("Content-Type"))
}

func testNothing(t *testing.T, m mode) {
	w := newWorld(t, m, settings{})
	w.play(func(_ http.ResponseWriter, r *http.Request, tx *spanner.ReadWriteTransaction) error {
		return count(r.Context(), tx)
	})
	for _, replayed := range []bool{false, true} {
		r := w.get(first)
		require.Equal(t, http.StatusOK, r.status)
		require.Empty(t, r.body)
		require.Empty(t, r.header.Get("Content-Type"))
		require.Equal(t, replayed, r.replayed())
	}
	require.EqualValues(t, 1, w.effects())
	// Neither has one that may have no body.
	w.play(func(rw http.ResponseWriter, _ *http.Request, _ *spanner.ReadWriteTransaction) error {
		rw.WriteHeader(http.StatusNoContent)
		_, err := io.WriteString(rw, "body")
		require.ErrorIs(w, err, http.ErrBodyNotAllowed)
		return nil
	})
	for range 2 {
		r := w.get(call{key: "k2"})
		require.Equal(t, http.StatusNoContent, r.status)
		require.Empty(t, r.body)
	}
}

func testNotKept(t *testing.T, m mode) {
	w := newWorld(t, m, settings{})
	w.play(func(rw http.ResponseWriter, r *http.Request, tx *spanner.ReadWriteTransaction) error {
		if err := count(r.Context(), tx); err != nil {
			return err
		}
		http.Error(rw, "not enough", http.StatusBadRequest)
		return nil
	})
	for range 2 {
		r := w.get(first)
		require.Equal(t, http.StatusBadRequest, r.status)
		require.Equal(t, "not enough\n", r.body)
		require.False(t, r.replayed())
	}
	w.nothingWasKept()
}

// nothingWasKept asserts that the operation can still be done.
func (w *world) nothingWasKept() {
	w.Helper()
	require.Zero(w, w.effects())
	require.Zero(w, w.records())
	w.play(created)
	w.succeeded(w.get(first), false)
	require.EqualValues(w, 1, w.effects())
}

func testRefused(t *testing.T, m mode) {
	w := newWorld(t, m, settings{})
	w.play(func(rw http.ResponseWriter, r *http.Request, tx *spanner.ReadWriteTransaction) error {
		if err := count(r.Context(), tx); err != nil {
			return err
		}
		rw.Header().Set("Set-Cookie", "a=b")
		http.Error(rw, "declined", http.StatusPaymentRequired)
		return idempotencyhttp.ErrRefused
	})
	for _, replayed := range []bool{false, true, true} {
		r := w.get(first)
		require.Equal(t, http.StatusPaymentRequired, r.status)
		require.Equal(t, "declined\n", r.body)
		require.Equal(t, replayed, r.replayed())
		require.Equal(t, replayed, r.header.Get("Set-Cookie") == "")
		w.play(created)
	}
	require.Zero(t, w.effects())
	require.EqualValues(t, 1, w.records())
}

func testProblem(t *testing.T, m mode) {
	w := newWorld(t, m, settings{})
	w.play(func(rw http.ResponseWriter, r *http.Request, tx *spanner.ReadWriteTransaction) error {
		return errors.Join(created(rw, r, tx), &idempotencyhttp.Problem{
			Type: "https://example.com/closed", Status: http.StatusServiceUnavailable, Detail: "closed until eight",
			Header: http.Header{"Retry-After": {"600"}},
		})
	})
	r := w.get(first)
	require.Equal(t, http.StatusServiceUnavailable, r.status)
	require.Equal(t, "600", r.header.Get("Retry-After"))
	require.Equal(t, "application/problem+json", r.header.Get("Content-Type"))
	require.Empty(t, r.header.Get("Location"), "what the handler wrote was sent")
	require.JSONEq(t, `{"type":"https://example.com/closed","title":"Service Unavailable","status":503,"detail":"closed until eight"}`, r.body)
	w.nothingWasKept()
}

func testError(t *testing.T, m mode) {
	w := newWorld(t, m, settings{})
	w.play(func(rw http.ResponseWriter, r *http.Request, tx *spanner.ReadWriteTransaction) error {
		return errors.Join(created(rw, r, tx), errors.New("the password is 1234"))
	})
	r := w.get(first)
	w.refusedWith(r, http.StatusInternalServerError, "failed")
	require.NotContains(t, r.body, "1234")
	require.Empty(t, r.header.Get("Location"))
	w.nothingWasKept()
}

func testPanic(t *testing.T, m mode) {
	w := newWorld(t, m, settings{})
	w.play(func(rw http.ResponseWriter, r *http.Request, tx *spanner.ReadWriteTransaction) error {
		if err := created(rw, r, tx); err != nil {
			return err
		}
		panic("broken")
	})
	_, err := w.do(first)
	require.ErrorIs(t, err, io.EOF)
	w.nothingWasKept()
}

func testStream(t *testing.T, m mode) {
	w := newWorld(t, m, settings{})
	w.play(func(rw http.ResponseWriter, r *http.Request, tx *spanner.ReadWriteTransaction) error {
		rw.WriteHeader(http.StatusEarlyHints)
		rw.Header().Set("Trailer", "X-Sum")
		if err := count(r.Context(), tx); err != nil {
			return err
		}
		for _, part := range []string{"one, ", "two"} {
			if _, err := io.WriteString(rw, part); err != nil {
				return err
			}
			require.ErrorIs(t, http.NewResponseController(rw).Flush(), http.ErrNotSupported)
		}
		rw.Header().Set("Location", "/too-late")
		rw.Header().Set("X-Sum", "1")
		_, _, err := http.NewResponseController(rw).Hijack()
		require.ErrorIs(t, err, http.ErrNotSupported)
		return nil
	})
	for range 2 {
		r := w.get(first)
		require.Equal(t, http.StatusOK, r.status)
		require.Equal(t, "one, two", r.body)
		require.Equal(t, "8", r.header.Get("Content-Length"))
		require.Equal(t, "text/plain; charset=utf-8", r.header.Get("Content-Type"))
		require.Empty(t, r.header.Get("Location"))
		require.Empty(t, r.header.Get("Trailer"), "a trailer was promised")
	}
	require.EqualValues(t, 1, w.effects())
}

// The handler knows its operation, for a unique key of its own.
func TestOperationOf(t *testing.T) {
	t.Parallel()
	for _, m := range modes {
		w := newWorld(t, m, settings{})
		w.play(func(rw http.ResponseWriter, r *http.Request, _ *spanner.ReadWriteTransaction) error {
			op, ok := idempotencyhttp.OperationOf(r)
			require.True(t, ok)
			require.Equal(t, idempotency.Operation{Scope: "alice", Name: "make thing", Key: "k1"}, op)
			return nil
		})
		require.Equal(t, http.StatusOK, w.get(first).status)
	}
	_, ok := idempotencyhttp.OperationOf(&http.Request{})
	require.False(t, ok)
}
