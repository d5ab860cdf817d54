package idempotencyhttp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/idempotency"
)

func TestConfigDefaults(t *testing.T) {
	t.Parallel()
	c := Config{}.withDefaults()
	require.NotNil(t, c.Logger)
	c.Logger = nil
	require.Equal(t, Config{
		Methods: []string{"POST", "PATCH"}, Headers: []string{"Location", "ETag"},
		MaxRequest: 1 << 20, MaxAnswer: 1 << 20, Wait: 10 * time.Second, MaxWaiters: 8, RetryAfter: 2 * time.Second,
	}, c)
}

func TestConfigIsRefusedByName(t *testing.T) {
	t.Parallel()
	good := func() Config {
		return Config{Scope: func(*http.Request) (string, error) { return "a", nil }}.withDefaults()
	}
	require.NoError(t, good().validate())
	for want, spoil := range map[string]func(*Config){
		"Config.Scope is nil":                          func(c *Config) { c.Scope = nil },
		"Config.Methods is empty":                      func(c *Config) { c.Methods = []string{} },
		`Config.Methods is ["post"]; methods are`:      func(c *Config) { c.Methods = []string{"post"} },
		`Config.Methods is ["PUT" ""]; methods`:        func(c *Config) { c.Methods = []string{"PUT", ""} },
		`Config.Headers has "", which is no name`:      func(c *Config) { c.Headers = []string{""} },
		`Config.Headers has "X Y", which`:              func(c *Config) { c.Headers = []string{"X Y"} },
		"Config.MaxRequest is -1":                      func(c *Config) { c.MaxRequest = -1 },
		"Config.MaxAnswer is -1":                       func(c *Config) { c.MaxAnswer = -1 },
		"Config.Wait is -1s":                           func(c *Config) { c.Wait = -time.Second },
		"Config.MaxWaiters is -1":                      func(c *Config) { c.MaxWaiters = -1 },
		"Config.RetryAfter is 500ms; it must be 1s":    func(c *Config) { c.RetryAfter = time.Second / 2 },
		"Config.Headers has set-cookie, which":         func(c *Config) { c.Headers = []string{"ETag", "set-cookie"} },
		"Config.Headers has Date, which":               func(c *Config) { c.Headers = []string{"Date"} },
		`Polling.Path is "operations/"`:                func(c *Config) { c.Polling.Path = "operations/" },
		`Polling.Path is "/operations"`:                func(c *Config) { c.Polling.Path = "/operations" },
		"Polling.Secret has 31 bytes; it must have 32": func(c *Config) { c.Polling = Polling{"/o/", make([]byte, 31)} },
	} {
		c := good()
		spoil(&c)
		err := c.validate()
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, want)
	}
	_, err := New(nil, good())
	require.ErrorContains(t, err, "New needs a store")
	_, err = New(new(idempotency.Store), Config{})
	require.ErrorContains(t, err, "Config.Scope is nil")
	m, err := New(new(idempotency.Store), good())
	require.NoError(t, err)
	tx := func(http.ResponseWriter, *http.Request, *spanner.ReadWriteTransaction) error { return nil }
	steps := func(*http.Request, *Steps) error { return nil }
	require.NotPanics(t, func() { m.Tx("n", tx); m.Steps("n", steps) })
	require.Panics(t, func() { m.Tx("", tx) })
	require.Panics(t, func() { m.Steps(strings.Repeat("n", 129), steps) })
	require.Panics(t, func() { m.Tx("n", nil) })
	require.Panics(t, func() { m.Steps("n", nil) })
	require.Panics(t, func() { m.Operations() })
}

// What the fingerprint is made of, where a router would not let a test ask.
func TestFingerprintTakesThePathWithoutARoute(t *testing.T) {
	t.Parallel()
	of := func(target string) idempotency.Fingerprint {
		fp, err := fingerprint(httptest.NewRequest(http.MethodPost, target, nil), nil)
		require.NoError(t, err)
		return fp
	}
	require.Equal(t, of("/a?x=1&y=2"), of("/a?y=2&x=1"))
	require.NotEqual(t, of("/a?x=1&x=2"), of("/a?x=2&x=1"))
	require.NotEqual(t, of("/a"), of("/b"))
	require.NotEqual(t, of("/a/b"), of("/a%2Fb"))
}

// Other routers set a pattern of their own grammar, and may keep its values to
// themselves.
func TestFingerprintTakesThePathBehindAnotherRouter(t *testing.T) {
	t.Parallel()
	of := func(pattern, target string) idempotency.Fingerprint {
		r := httptest.NewRequest(http.MethodPost, target, nil)
		r.Pattern = pattern
		fp, err := fingerprint(r, nil)
		require.NoError(t, err)
		return fp
	}
	for _, pattern := range []string{"/rides/{id:[0-9]{1,9}}", "/rides/:id", "/rides/*", "/rides/{"} {
		require.Equal(t, of(pattern, "/rides/1"), of(pattern, "/rides/1"))
		require.NotEqual(t, of(pattern, "/rides/1"), of(pattern, "/rides/2"), pattern)
	}
}

// A body that is packed is another text than the same bytes unpacked.
func TestFingerprintTakesTheCoding(t *testing.T) {
	t.Parallel()
	of := func(coding string) idempotency.Fingerprint {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set("Content-Encoding", coding)
		fp, err := fingerprint(r, []byte("{}"))
		require.NoError(t, err)
		return fp
	}
	require.NotEqual(t, of(""), of("gzip"))
	require.NotEqual(t, of("br"), of("gzip"))
}

// Path values that would run into each other, and a route with all that a
// pattern may have.
func TestFingerprintKeepsPathValuesApart(t *testing.T) {
	t.Parallel()
	of := func(pattern, target string) (fp idempotency.Fingerprint) {
		mux := http.NewServeMux()
		mux.HandleFunc(pattern, func(_ http.ResponseWriter, r *http.Request) {
			var err error
			fp, err = fingerprint(r, nil)
			require.NoError(t, err)
		})
		mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, target, nil))
		require.NotZero(t, fp)
		return fp
	}
	require.NotEqual(t, of("/{a}/{b}", "/xy/z"), of("/{a}/{b}", "/x/yz"))
	require.NotEqual(t, of("POST /f/{rest...}", "/f/x/y"), of("POST /f/{rest...}", "/f/x"))
	require.NotEqual(t, of("/{a}/{$}", "/x/"), of("/{a}/{$}", "/y/"))
	require.NotEqual(t, of("/{a}", "/x"), of("/{b}", "/x"), "another route")
}

func TestSealIsStableAndOpensForItsScopeOnly(t *testing.T) {
	t.Parallel()
	secret := []byte(strings.Repeat("s", 32))
	op := idempotency.Operation{Scope: "alice", Name: "pay", Key: "k\x00with a zero, and ü"}
	a, b := newSeal(secret), newSeal(secret)
	id := a.close(op)
	require.Equal(t, id, b.close(op))
	got, ok := b.open("alice", id)
	require.True(t, ok)
	require.Equal(t, op, got)

	named := idempotency.Operation{Scope: "alice", Name: "\x00", Key: "k"}
	got, ok = a.open("alice", a.close(named))
	require.True(t, ok)
	require.Equal(t, named, got)

	_, ok = a.open("bob", id)
	require.False(t, ok)
	_, ok = newSeal([]byte(strings.Repeat("t", 32))).open("alice", id)
	require.False(t, ok)
	for i := range len(id) {
		c := byte('A')
		if id[i] == c {
			c = 'B'
		}
		_, ok = a.open("alice", id[:i]+string(c)+id[i+1:])
		require.False(t, ok, "character %d was changed", i)
	}
	other := op
	other.Scope = "bob"
	require.NotEqual(t, id, a.close(other))
}

func TestRetryAfterIsWholeSecondsRoundedUp(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{0: "1", -time.Second: "1", time.Millisecond: "1", time.Second: "1", 1001 * time.Millisecond: "2"} {
		require.Equal(t, want, newProblem(409, "in-progress", "", "").after(d).Header.Get("Retry-After"))
	}
}

// Results that a handler made itself, and those of a later program.
func TestFromReceipt(t *testing.T) {
	t.Parallel()
	a, err := fromReceipt(idempotency.Receipt{Result: idempotency.Result{Type: "text/plain", Body: []byte("x\ny")}})
	require.NoError(t, err)
	require.Equal(t, answer{status: 200, header: http.Header{"Content-Type": {"text/plain"}}, body: []byte("x\ny")}, a)
	for _, r := range []idempotency.Result{
		{Code: 200, Version: 2}, {Code: 99, Version: 0}, {Code: 200, Version: framed, Body: []byte("{}")}, {Code: 200, Version: framed, Body: []byte("{\n")},
	} {
		_, err := fromReceipt(idempotency.Receipt{Result: r})
		require.Error(t, err)
	}
}

// What goes out is what has landed: a run that came after the one that landed
// has answered in vain.
func TestReplySendsWhatHasLanded(t *testing.T) {
	t.Parallel()
	m, err := New(new(idempotency.Store), Config{Scope: func(*http.Request) (string, error) { return "a", nil }})
	require.NoError(t, err)
	of := func(body string) answer {
		return answer{status: http.StatusCreated, header: http.Header{"Location": {"/" + body}, "Set-Cookie": {body}}, body: []byte(body)}
	}
	landed, err := toResult(of("landed"), m.cfg.Headers)
	require.NoError(t, err)
	for last, cookie := range map[string]string{"landed": "landed", "in vain": ""} {
		w := httptest.NewRecorder()
		q := &request{http: httptest.NewRequest(http.MethodPost, "/", nil)}
		m.reply(w, q, of(last), idempotency.Receipt{Result: landed, Completed: time.Now()}, nil)
		require.Equal(t, "landed", w.Body.String())
		require.Equal(t, "/landed", w.Header().Get("Location"))
		require.Equal(t, cookie, w.Header().Get("Set-Cookie"))
		require.Empty(t, w.Header().Get("Idempotent-Replayed"))
	}
}
