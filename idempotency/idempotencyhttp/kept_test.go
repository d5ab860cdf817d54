package idempotencyhttp_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/idempotency/idempotencyhttp"
)

// The cases of answers that cannot be kept, or not whole.

// large answers with a body of 2000 bytes and passes over the error.
func large(rw http.ResponseWriter, r *http.Request, tx *spanner.ReadWriteTransaction) error {
	rw.Header().Set("Location", "/things/7")
	rw.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(rw, strings.Repeat("x", 2000))
	return count(r.Context(), tx)
}

func testTooLarge(t *testing.T, m mode) {
	for _, s := range []settings{
		{http: idempotencyhttp.Config{MaxAnswer: 1999}},
		{store: idempotency.Config{MaxBody: 1999}},
	} {
		w := newWorld(t, m, s)
		w.play(large)
		w.refusedWith(w.get(first), http.StatusInternalServerError, "too-large")
		w.nothingWasKept()
	}
}

func testHeaderInvalid(t *testing.T, m mode) {
	w := newWorld(t, m, settings{})
	for name, value := range map[string]string{
		"Location": "/caf\xe9", "ETag": "\"\xff\"", "Content-Type": "text/caf\xe9", "content-type": strings.Repeat("t", 256),
	} {
		w.play(func(rw http.ResponseWriter, r *http.Request, tx *spanner.ReadWriteTransaction) error {
			rw.Header().Set(name, value)
			rw.WriteHeader(http.StatusCreated)
			return count(r.Context(), tx)
		})
		r := w.get(first)
		w.refusedWith(r, http.StatusInternalServerError, "failed")
		require.EqualValues(t, 1, w.runs.Swap(0), "%s: it was tried again", name)
	}
	w.nothingWasKept()
}

func testBodyDropped(t *testing.T, m mode) {
	w := newWorld(t, m, settings{store: idempotency.Config{MaxBody: 1999, DropLargeBodies: true}})
	w.play(large)
	r := w.get(first)
	require.Equal(t, http.StatusCreated, r.status)
	require.Len(t, r.body, 2000)
	r = w.get(first)
	require.Equal(t, http.StatusCreated, r.status)
	require.True(t, r.replayed())
	require.Equal(t, "/things/7", r.header.Get("Location"))
	require.Empty(t, r.body)
	require.Empty(t, r.header.Get("Content-Type"))
	require.EqualValues(t, 1, w.effects())
}

// A body that was not kept can be made from the resource; the answer says that
// it is of today.
func TestPresentIsMarked(t *testing.T) {
	t.Parallel()
	for _, m := range modes {
		w := newWorld(t, m, settings{store: idempotency.Config{
			MaxBody: 1999, DropLargeBodies: true,
			Present: func(_ context.Context, _ idempotency.Operation, r idempotency.Receipt) (idempotency.Result, error) {
				return idempotency.Result{Code: r.Code, Type: "text/plain", Body: []byte("now at " + r.ResourceID)}, nil
			},
		}})
		w.play(large)
		require.Len(t, w.get(first).body, 2000)
		r := w.get(first)
		require.Equal(t, http.StatusCreated, r.status)
		require.Equal(t, "now at /things/7", r.body)
		require.Equal(t, "text/plain", r.header.Get("Content-Type"))
		require.True(t, r.replayed())
		require.Equal(t, "true", r.header.Get("Idempotent-Present"))
	}
}
