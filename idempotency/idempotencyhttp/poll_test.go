package idempotencyhttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/idempotency"
	"github.com/spanqueue/spanqueue/idempotency/idempotencyhttp"
)

// The cases of operations that are polled.

func testPoll(t *testing.T, m mode) {
	if m != inPolling {
		t.Skip("there is nothing to poll without Config.Polling")
	}
	w := newWorld(t, m, settings{})
	begun, let := w.held()
	done := w.startAndAwait(call{key: "secret-key"}, begun)
	duplicate := w.get(call{key: "secret-key"})
	require.Equal(t, http.StatusAccepted, duplicate.status)
	place := duplicate.header.Get("Location")
	require.NotContains(t, place, "secret-key")
	require.JSONEq(t, `{"operation":"`+place+`","state":"in_progress"}`, duplicate.body)

	look := call{method: http.MethodGet, path: place}
	r := w.get(look)
	require.Equal(t, http.StatusAccepted, r.status)
	require.Equal(t, duplicate.body, r.body)
	require.Equal(t, place, r.header.Get("Location"))
	require.Equal(t, "no-store", r.header.Get("Cache-Control"))
	w.retryLater(r)
	let()
	o := <-done
	require.NoError(t, o.err)
	w.succeeded(o.reply, false)
	w.succeeded(w.get(look), true)

	// Nobody else, nothing else, and no other way.
	bob := look
	bob.who = "bob"
	w.refusedWith(w.get(bob), http.StatusNotFound, "no-operation")
	for _, id := range []string{"", "x", "!", place[len("/operations/"):] + "AA", "AAAAAAAAAAAAAAAAAAAAAAAAAAAA"} {
		w.refusedWith(w.get(call{method: http.MethodGet, path: "/operations/" + id}), http.StatusNotFound, "no-operation")
	}
	w.blocked.Store("alice")
	w.refusedWith(w.get(look), http.StatusForbidden, "forbidden")
	w.blocked.Store("")
	w.refusedWith(w.get(call{path: place}), http.StatusMethodNotAllowed, "method")
	w.expire()
	w.refusedWith(w.get(look), http.StatusNotFound, "no-operation")
}

// An operation that nobody is at work on says so: the request has to come again.
func TestPollOfAnOperationThatWaits(t *testing.T) {
	t.Parallel()
	var place string
	fail := true
	w := &world{}
	w = newWorld(t, inPolling, settings{steps: func(r *http.Request, s *idempotencyhttp.Steps) error {
		_, err := idempotency.Local(r.Context(), s.Run, "count", func(ctx context.Context, tx *spanner.ReadWriteTransaction) (int, error) {
			return 1, count(ctx, tx)
		})
		if err != nil {
			return err
		}
		if fail {
			place = w.get(first).header.Get("Location")
			return errors.New("later")
		}
		return s.Complete(r.Context(), func(_ context.Context, _ *spanner.ReadWriteTransaction, rw http.ResponseWriter) error {
			_, err := io.WriteString(rw, "done")
			return err
		})
	}})
	w.refusedWith(w.get(first), http.StatusInternalServerError, "failed")
	look := call{method: http.MethodGet, path: place}
	r := w.get(look)
	require.Equal(t, http.StatusAccepted, r.status)
	require.JSONEq(t, `{"operation":"`+place+`","state":"waiting"}`, r.body)
	fail = false
	require.Equal(t, "done", w.get(first).body)
	r = w.get(look)
	require.Equal(t, "done", r.body)
	require.True(t, r.replayed())
	require.EqualValues(t, 1, w.effects())
}
