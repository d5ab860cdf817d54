package emulator

import (
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A free port is one that is free at every address; a port that was named is not tried twice.
func TestOpenSamePort(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		port string
		open []any // what comes of each call: a port, or an error
		want string
		asks string
		err  error
	}{
		"free at once":           {"0", []any{1, 1}, "1", "a:0 b:1", nil},
		"taken at the second":    {"0", []any{1, syscall.EADDRINUSE, 2, 2}, "2", "a:0 b:1 a:0 b:2", nil},
		"no port":                {"", []any{1, syscall.EADDRINUSE, 2, 2}, "2", "a: b:1 a: b:2", nil},
		"not there":              {"0", []any{syscall.EADDRNOTAVAIL, 3}, "3", "a:0 b:0", nil},
		"nothing there":          {"0", []any{syscall.EADDRNOTAVAIL, syscall.EAFNOSUPPORT}, "0", "a:0 b:0", nil},
		"named and taken":        {"7", []any{7, syscall.EADDRINUSE}, "", "a:7 b:7", syscall.EADDRINUSE},
		"not allowed":            {"0", []any{syscall.EACCES}, "", "a:0", syscall.EACCES},
		"taken, again and again": {"0", repeated(syscall.EADDRINUSE, freeTries), "", strings.TrimSpace(strings.Repeat("a:0 ", freeTries)), syscall.EADDRINUSE},
	} {
		var asked []string
		var all []*fakeListener
		opened, port, err := openSame([]string{"a", "b"}, c.port, func(addr string) (net.Listener, error) {
			next := c.open[len(asked)]
			asked = append(asked, addr)
			if err, failed := next.(error); failed {
				return nil, err
			}
			l := &fakeListener{addr: &net.TCPAddr{Port: next.(int)}}
			all = append(all, l)
			return l, nil
		})
		require.Equal(t, c.err, err, name)
		require.Equal(t, c.want, port, name)
		require.Equal(t, c.asks, strings.Join(asked, " "), name)
		left := 0
		for _, l := range all {
			if !l.closed {
				left++
			}
		}
		require.Equal(t, len(opened), left, "%s: what is not returned is closed", name)
	}
}

func repeated(err error, n int) (all []any) {
	for range n {
		all = append(all, err)
	}
	return all
}

type fakeListener struct {
	net.Listener
	addr   net.Addr
	closed bool
}

func (l *fakeListener) Addr() net.Addr { return l.addr }
func (l *fakeListener) Close() error   { l.closed = true; return nil }
