package idempotencyhttp_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/idempotency/idempotencyhttp"
)

// The cases of what a request says, before its handler runs.

func testKeyMissing(t *testing.T, m mode) {
	w := newWorld(t, m, settings{})
	w.refusedWith(w.get(call{}), http.StatusBadRequest, "key-missing")
	require.Zero(t, w.runs.Load())
}

func testKeyInvalid(t *testing.T, m mode) {
	w := newWorld(t, m, settings{})
	for _, keys := range [][]string{
		{"a", "b"}, {""}, {`""`}, {`"a`}, {`a"b`}, {`"a"b`}, {`"a";p=1`}, {"a,b"}, {"a b"}, {"ä"}, {`"ä"`}, {`"a\b"`}, {`"a\`},
		{strings.Repeat("k", 256)}, {`"` + strings.Repeat("k", 256) + `"`},
	} {
		w.refusedWith(w.get(call{keys: keys}), http.StatusBadRequest, "key-invalid")
	}
	require.Zero(t, w.runs.Load())
	w.succeeded(w.get(call{key: strings.Repeat("k", 255)}), false)
}

func testKeyOptional(t *testing.T, m mode) {
	w := newWorld(t, m, settings{http: idempotencyhttp.Config{KeyOptional: true}})
	w.succeeded(w.get(call{}), false)
	w.succeeded(w.get(call{}), false)
	require.EqualValues(t, 2, w.effects())
	w.succeeded(w.get(first), false)
	w.succeeded(w.get(first), true)
	require.EqualValues(t, 3, w.effects())
}

func testKeyQuoted(t *testing.T, m mode) {
	w := newWorld(t, m, settings{})
	w.succeeded(w.get(call{key: "8e03978e-40d5"}), false)
	w.succeeded(w.get(call{key: `"8e03978e-40d5"`}), true)
	w.succeeded(w.get(call{key: `"8E03978E-40D5"`}), false)
	w.succeeded(w.get(call{key: `"a \"\\ b"`}), false)
	w.succeeded(w.get(call{key: `"a \"\\ b"`}), true)
	require.EqualValues(t, 3, w.effects())
}

func testOtherRequest(t *testing.T, m mode) {
	w := newWorld(t, m, settings{})
	original := call{key: "k1", path: "/things/7?a=1&b=2", body: `{"amount":9007199254740993}`}
	w.succeeded(w.get(original), false)
	for name, change := range map[string]func(*call){
		"body":           func(c *call) { c.body = `{"amount":9007199254740992}` },
		"no body":        func(c *call) { c.body = "" },
		"type":           func(c *call) { c.media = "text/plain" },
		"query value":    func(c *call) { c.path = "/things/7?a=1&b=3" },
		"query, two":     func(c *call) { c.path = "/things/7?a=1&b=2&b=2" },
		"query, none":    func(c *call) { c.path = "/things/7" },
		"path value":     func(c *call) { c.path = "/things/8?a=1&b=2" },
		"route":          func(c *call) { c.path = "/other/7?a=1&b=2" },
		"another method": func(c *call) { c.method = http.MethodPatch },
	} {
		other := original
		change(&other)
		r := w.get(other)
		w.refusedWith(r, http.StatusUnprocessableEntity, "key-reused")
		require.NotContains(t, r.body, `"id"`, "%s: the old answer was shown", name)
	}
	w.succeeded(w.get(original), true)
	require.EqualValues(t, 1, w.effects())
	require.EqualValues(t, 1, w.runs.Load())
}

func testSameJSON(t *testing.T, m mode) {
	w := newWorld(t, m, settings{})
	w.succeeded(w.get(call{key: "k1", path: "/things?x=1&y=2", body: `{"a":1,"b":[1,2]}`}), false)
	w.succeeded(w.get(call{key: "k1", path: "/things?y=2&x=1", body: ` { "b": [1, 2], "a": 1 } `, media: "application/json; charset=utf-8"}), true)
	// What is not JSON counts byte for byte.
	w.succeeded(w.get(call{key: "k2", body: "a b", media: "text/plain"}), false)
	w.refusedWith(w.get(call{key: "k2", body: "a  b", media: "text/plain"}), http.StatusUnprocessableEntity, "key-reused")
}

func testOtherScope(t *testing.T, m mode) {
	w := newWorld(t, m, settings{})
	w.succeeded(w.get(first), false)
	other := first
	other.who = "bob"
	w.succeeded(w.get(other), false)
	require.EqualValues(t, 2, w.effects())
}

func testNotAllowed(t *testing.T, m mode) {
	w := newWorld(t, m, settings{})
	unknown := first
	unknown.who = "unknown"
	r := w.get(unknown)
	require.Equal(t, http.StatusUnauthorized, r.status)
	require.Equal(t, "Basic", r.header.Get("WWW-Authenticate"))
	require.Equal(t, "application/problem+json", r.header.Get("Content-Type"))
	require.JSONEq(t, `{"status":401,"title":"Who are you?"}`, r.body)

	w.succeeded(w.get(first), false)
	w.blocked.Store("alice")
	r = w.get(first)
	w.refusedWith(r, http.StatusForbidden, "forbidden")
	require.NotContains(t, r.body, "nobody is there", "an error's text was shown")
	w.blocked.Store("")
	w.succeeded(w.get(first), true)
	require.EqualValues(t, 1, w.effects())
}

func testMethod(t *testing.T, m mode) {
	w := newWorld(t, m, settings{})
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		c := first
		c.method = method
		r := w.get(c)
		w.refusedWith(r, http.StatusMethodNotAllowed, "method")
		require.Equal(t, "POST, PATCH", r.header.Get("Allow"))
	}
	require.Zero(t, w.runs.Load())
	c := first
	c.method = http.MethodPatch
	w.succeeded(w.get(c), false)

	w = newWorld(t, m, settings{http: idempotencyhttp.Config{Methods: []string{http.MethodPut}}})
	w.refusedWith(w.get(first), http.StatusMethodNotAllowed, "method")
	c.method = http.MethodPut
	w.succeeded(w.get(c), false)
}

func testRequestTooLarge(t *testing.T, m mode) {
	w := newWorld(t, m, settings{http: idempotencyhttp.Config{MaxRequest: 10}})
	w.refusedWith(w.get(call{key: "k", media: "text/plain", body: strings.Repeat("x", 11)}), http.StatusRequestEntityTooLarge, "request-too-large")
	require.Zero(t, w.runs.Load())
	w.succeeded(w.get(call{key: "k", media: "text/plain", body: strings.Repeat("x", 10)}), false)
}

func testRequestUnreadable(t *testing.T, m mode) {
	w := newWorld(t, m, settings{})
	for _, c := range []call{
		{body: `{"a":1`}, {body: `{"a":1,"a":2}`}, {body: `{} {}`}, {path: "/things?a=%zz"}, {media: "application/vnd.x+json", body: "x"},
	} {
		c.key = "k"
		w.refusedWith(w.get(c), http.StatusBadRequest, "request-unreadable")
	}
	require.Zero(t, w.runs.Load())
	w.succeeded(w.get(call{key: "k"}), false) // no body is no broken one
}

// Something outside has read the body and not put it back: what was asked for
// cannot be told from any other request.
func testBodyRead(t *testing.T, m mode) {
	w := newWorld(t, m, settings{})
	w.serve(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "reader" {
			_, _ = io.ReadAll(r.Body)
		}
		w.handler.ServeHTTP(rw, r)
	}))
	c := first
	c.who = "reader"
	w.refusedWith(w.get(c), http.StatusInternalServerError, "failed")
	require.Zero(t, w.runs.Load())
	w.succeeded(w.get(first), false)
}
