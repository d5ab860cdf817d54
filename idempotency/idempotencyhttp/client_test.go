package idempotencyhttp_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/idempotency/idempotencyhttp"
)

// reply is what a client sees.
type reply struct {
	status int
	header http.Header
	body   string
}

func (r reply) replayed() bool { return r.header.Get("Idempotent-Replayed") == "true" }

// call is a request to be made.
type call struct {
	method, path, key, body, who, media string
	keys                                []string // in place of key
	ctx                                 context.Context
}

func (w *world) do(c call) (reply, error) {
	set := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	set(&c.method, http.MethodPost)
	set(&c.path, "/things")
	set(&c.who, "alice")
	set(&c.media, "application/json")
	if c.ctx == nil {
		c.ctx = w.Context()
	}
	req, err := http.NewRequestWithContext(c.ctx, c.method, w.url+c.path, strings.NewReader(c.body))
	require.NoError(w, err)
	// Without GetBody the transport does not send a request twice by itself.
	req.GetBody = nil
	req.Header.Set("Authorization", c.who)
	req.Header.Set("Content-Type", c.media)
	if c.key != "" {
		c.keys = []string{c.key}
	}
	req.Header["Idempotency-Key"] = c.keys
	resp, err := w.http.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(body)}, err
}

// get is do for a request that is answered.
func (w *world) get(c call) reply {
	w.Helper()
	r, err := w.do(c)
	require.NoError(w, err)
	return r
}

// first is the request of most cases.
var first = call{key: `"k1"`, body: `{"a":1,"b":2}`}

// refusedWith asserts that the answer is a problem, and that the page tells of
// its kind.
func (w *world) refusedWith(r reply, status int, kind string) {
	w.Helper()
	require.Equal(w, status, r.status, r.body)
	require.Equal(w, "application/problem+json", r.header.Get("Content-Type"))
	var p idempotencyhttp.Problem
	require.NoError(w, json.Unmarshal([]byte(r.body), &p), r.body)
	require.Equal(w, status, p.Status)
	require.NotEmpty(w, p.Title)
	_, anchor, found := strings.Cut(p.Type, "docs/idempotency-http.md#")
	require.True(w, found, p.Type)
	require.Equal(w, kind, anchor)
	require.True(w, strings.Contains(readPage(w.T), "\n### "+kind+"\n"), "the page does not tell of %s", kind)
	require.False(w, r.replayed())
}

// retryLater asserts that the answer says when to come again.
func (w *world) retryLater(r reply) {
	w.Helper()
	require.Regexp(w, `^[1-9][0-9]*$`, r.header.Get("Retry-After"))
}

// succeeded asserts that an answer is the script created's.
func (w *world) succeeded(r reply, replayed bool) {
	w.Helper()
	require.Equal(w, http.StatusCreated, r.status, r.body)
	require.Equal(w, `{"id":7}`, r.body)
	require.Equal(w, "application/json", r.header.Get("Content-Type"))
	require.Equal(w, "/things/7", r.header.Get("Location"))
	require.Equal(w, `"v1"`, r.header.Get("ETag"))
	require.Equal(w, replayed, r.replayed())
	if replayed {
		require.Empty(w, r.header.Get("Set-Cookie"))
		require.Empty(w, r.header.Get("X-Own"))
	}
}

// wait waits for what other goroutines bring about.
func (w *world) wait(what string, holds func() bool) {
	w.Helper()
	require.Eventually(w, holds, time.Minute, 5*time.Millisecond, what)
}
