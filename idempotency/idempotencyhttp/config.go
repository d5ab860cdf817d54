package idempotencyhttp

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"
)

// ErrInvalid is wrapped by New when the configuration cannot be used.
var ErrInvalid = errors.New("idempotencyhttp: invalid")

// Config tunes a Middleware. Scope must be set; the zero values of all else are
// good ones.
type Config struct {
	// Scope authenticates and authorises the request and returns who asks: a
	// tenant, an account, 1 to 128 characters. It is called for each attempt,
	// before anything is done or replayed, and its answer must not be taken
	// from the request unchecked: who has the scope can read the answers in it.
	// An error refuses the request: a *Problem as it says, any other as 403.
	Scope func(*http.Request) (string, error)
	// Methods are those that may be used and need a key; others are answered
	// with 405. Nil: POST and PATCH.
	Methods []string
	// KeyOptional lets requests without a key pass. Each is an operation of its
	// own then, under a random key. Otherwise they are answered with 400.
	KeyOptional bool
	// Headers are the names of the headers that a replay repeats, besides
	// Content-Type and Content-Encoding. Set-Cookie, Date and what belongs to
	// one connection are refused. Nil: Location and ETag.
	Headers []string
	// MaxRequest is the size in bytes that a request's body may have; above it
	// the answer is 413. Zero: 1 MiB.
	MaxRequest int64
	// MaxAnswer is the size in bytes up to which an answer's body is buffered;
	// above it nothing is committed and the answer is 500. What is kept is
	// bounded by idempotency.Config.MaxBody besides. Zero: 1 MiB.
	MaxAnswer int
	// Wait is how long a request waits for the operation's turn in mode Tx and
	// then for its record in either mode, if its own context lasts so long.
	// Zero: 10 s.
	Wait time.Duration
	// MaxWaiters is how many duplicates of one operation wait at the same time
	// in this process in mode Tx; more are answered with 409 at once. Zero: 8.
	MaxWaiters int
	// RetryAfter is the longest time that a Retry-After header asks for; it
	// counts whole seconds. Zero: 2 s. At least 1 s.
	RetryAfter time.Duration
	// Polling makes mode Steps answer duplicates with 202 and an operation to
	// poll. The zero value answers them with 409.
	Polling Polling
	// Logger gets what clients are not told. Nil: slog.Default.
	Logger *slog.Logger
}

// Polling says where operations can be looked at.
type Polling struct {
	// Path is where Middleware.Operations is mounted, such as "/operations/".
	// It begins and ends with a slash. Empty: there is no polling.
	Path string
	// Secret seals the operations' names and keys in URLs, so that no key
	// stands in a log of URLs. 32 bytes at least, the same in all processes.
	Secret []byte
}

const minSecret = 32

func (p Polling) on() bool { return p.Path != "" }

// neverReplayed are headers that would be wrong, or another's, in a replay.
var neverReplayed = []string{
	"Set-Cookie", "Set-Cookie2", "Date", "Connection", "Keep-Alive", "Transfer-Encoding", "Trailer", "Upgrade",
	"Content-Length", "Proxy-Authenticate", "Www-Authenticate", "Retry-After", replayedHeader,
}

func (c Config) withDefaults() Config {
	if c.Methods == nil {
		c.Methods = []string{http.MethodPost, http.MethodPatch}
	}
	if c.Headers == nil {
		c.Headers = []string{"Location", "ETag"}
	}
	setDefault(&c.MaxRequest, 1<<20)
	setDefault(&c.MaxAnswer, 1<<20)
	setDefault(&c.Wait, 10*time.Second)
	setDefault(&c.MaxWaiters, 8)
	setDefault(&c.RetryAfter, 2*time.Second)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// validate checks a configuration that has its defaults.
func (c Config) validate() error {
	switch {
	case c.Scope == nil:
		return fmt.Errorf("%w: Config.Scope is nil; it must say who asks", ErrInvalid)
	case len(c.Methods) == 0:
		return fmt.Errorf("%w: Config.Methods is empty; it must name one method at least", ErrInvalid)
	case slices.ContainsFunc(c.Methods, func(m string) bool { return !isToken(m) || m != strings.ToUpper(m) }):
		return fmt.Errorf("%w: Config.Methods is %q; methods are written in capitals, such as %q", ErrInvalid, c.Methods, http.MethodPost)
	case c.MaxRequest < 0:
		return fmt.Errorf("%w: Config.MaxRequest is %d; it must be positive", ErrInvalid, c.MaxRequest)
	case c.MaxAnswer < 0:
		return fmt.Errorf("%w: Config.MaxAnswer is %d; it must be positive", ErrInvalid, c.MaxAnswer)
	case c.Wait < 0:
		return fmt.Errorf("%w: Config.Wait is %v; it must be positive", ErrInvalid, c.Wait)
	case c.MaxWaiters < 0:
		return fmt.Errorf("%w: Config.MaxWaiters is %d; it must be positive", ErrInvalid, c.MaxWaiters)
	case c.RetryAfter < time.Second:
		return fmt.Errorf("%w: Config.RetryAfter is %v; it must be 1s at least", ErrInvalid, c.RetryAfter)
	}
	for _, name := range c.Headers {
		if !isToken(name) {
			return fmt.Errorf("%w: Config.Headers has %q, which is no name of a header", ErrInvalid, name)
		}
		if slices.Contains(neverReplayed, http.CanonicalHeaderKey(name)) {
			return fmt.Errorf("%w: Config.Headers has %s, which is never replayed", ErrInvalid, name)
		}
	}
	return c.Polling.validate()
}

// isToken says whether s may stand as a method or the name of a header (RFC 9110).
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return c <= ' ' || c > '~' || strings.ContainsRune("\"(),/:;<=>?@[\\]{}", c)
	})
}

func (p Polling) validate() error {
	switch {
	case !p.on():
		return nil
	case !strings.HasPrefix(p.Path, "/") || !strings.HasSuffix(p.Path, "/") || strings.ContainsAny(p.Path, "{}?# "):
		return fmt.Errorf("%w: Polling.Path is %q; it must be a path that begins and ends with a slash", ErrInvalid, p.Path)
	case len(p.Secret) < minSecret:
		return fmt.Errorf("%w: Polling.Secret has %d bytes; it must have %d at least", ErrInvalid, len(p.Secret), minSecret)
	}
	return nil
}
