//go:build unix

package emulator

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestDeathOfTheEmulator(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{"behind the front": {}, "bare": {NoFront: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := start(t, o)
			require.NoError(t, e.CreateDatabase(t.Context(), database, accountTable))
			require.NoError(t, e.Err(), "it lives")

			require.NoError(t, syscall.Kill(e.process.cmd.Process.Pid, syscall.SIGKILL))
			awaitEnd(t, e)
			require.ErrorIs(t, e.Err(), ErrDied)
			require.ErrorContains(t, e.Err(), "signal: killed")
			require.ErrorContains(t, e.Err(), "Server address: "+e.BackendAddr(), "its last lines")
			require.Equal(t, codes.Unavailable, status.Code(e.CreateInstance(t.Context(), "projects/p/instances/other")))

			require.NoError(t, e.Close())
			require.ErrorIs(t, e.Err(), ErrDied, "Close changes nothing about it")
		})
	}
}

// failing is an emulator that leaves its process id in a file and then does what body says.
func failing(t *testing.T, body string) (path string, pid func() int) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "pid")
	return script(t, dir, "emulator_main", "echo $$ >"+file+"\n"+body), func() int {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		n, err := strconv.Atoi(strings.TrimSpace(string(text)))
		require.NoError(t, err)
		return n
	}
}

func TestFailedStartLeavesNothing(t *testing.T) {
	t.Parallel()
	const long, short = time.Minute, 2 * time.Second
	for name, tc := range map[string]struct {
		body    string
		timeout time.Duration
		says    []string
	}{
		"it ends":                   {"echo one; echo no such flag >&2; exit 7", long, []string{"exit status 7", "one\n  no such flag"}},
		"it ends well":              {"exit 0", long, []string{"exit status 0", "it printed nothing"}},
		"it is killed":              {"kill -9 $$", long, []string{"signal: killed"}},
		"it ends after its address": {"echo Server address: localhost:1; echo out of memory; exit 8", long, []string{"exit status 8", "out of memory"}},
		"it prints nonsense":        {"echo Server address: nonsense; exec sleep 1000", long, []string{`it says that it listens at "nonsense"`}},
		"it prints no address":      {"echo starting; exec sleep 1000", short, []string{"it did not print its address", "not ready within Options.StartTimeout, 2s", "starting"}},
		"nobody is at its address":  {"echo Server address: localhost:1; exec sleep 1000", short, []string{"it does not answer at localhost:1", "not ready within Options.StartTimeout, 2s"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			binary, pid := failing(t, tc.body)
			_, err := Start(t.Context(), Options{Binary: binary, IgnoreEnvironment: true, StartTimeout: tc.timeout})
			for _, says := range tc.says {
				require.ErrorContains(t, err, says)
			}
			require.True(t, gone(pid()), "the process was not reaped")
		})
	}
}

func TestEndOfTheContextEndsAStart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	binary, pid := failing(t, "echo started; exec sleep 1000")
	gaveUp := errors.New("the user gave up")
	log := slog.New(slog.NewTextHandler(onWrite(func() { cancel(gaveUp) }), &slog.HandlerOptions{Level: slog.LevelDebug}))
	_, err := Start(ctx, Options{Binary: binary, IgnoreEnvironment: true, Logger: log})
	require.ErrorIs(t, err, gaveUp)
	require.True(t, gone(pid()), "the process was not reaped")
}

// onWrite is a writer that calls itself.
type onWrite func()

func (f onWrite) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

func TestPanicDuringAStartLeavesNothing(t *testing.T) {
	t.Parallel()
	binary, pid := failing(t, "echo Server address: localhost:1; exec sleep 1000")
	require.PanicsWithValue(t, "as planned", func() {
		_, _ = startBackend(t.Context(), command{script: lifeline, args: []string{binary}}, slog.New(slog.DiscardHandler),
			func(context.Context, string) (string, error) { panic("as planned") })
	})
	require.True(t, gone(pid()), "the process was not reaped")
}
