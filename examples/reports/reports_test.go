package main

import (
	"context"
	"flag"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/spanqueue/spanqueue/queue"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	// The program starts itself as a worker; here that is the test binary.
	if len(os.Args) > 1 && os.Args[1] == "-worker" {
		main()
		return
	}
	emulatortest.Main(m)
}

func TestReports(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := run(t.Context(), []string{"-lease", "2s", "-part", "700ms", "-parts", "4"}, &out)
	require.NoError(t, err, out.String())
	text := out.String()
	require.Equal(t, 3, strings.Count(text, "in the database once: 4 parts, total 30; nothing is left in the queue"), text)
	require.Contains(t, text, "no finished part twice")
	require.Equal(t, 12, strings.Count(text, "] part "), "every part is made once: %s", text)
	require.Contains(t, text, "a report takes 2.8s, a lease lasts 2s; three reports are made, which takes about 12.6s")
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	shown := settings{parts: 5, part: 5 * time.Second}
	require.Contains(t, string(readme), "three reports are made, which takes about "+shown.takes().String())
}

// What is not as it should be in the database ends the program with an error.
func TestCheckCanFail(t *testing.T) {
	t.Parallel()
	db := emulatortest.Database(t, requests.DDL(), string(reports))
	q, err := queue.New(db.Client(t), requests)
	require.NoError(t, err)
	teller := &teller{settings: settings{parts: 3}, out: io.Discard, client: db.Client(t), queue: q}
	require.Error(t, teller.check(t.Context(), "r"), "there is none")
	report := func(parts, total int) {
		_, err := teller.client.Apply(t.Context(), []*spanner.Mutation{spanner.InsertOrUpdate("Reports", []string{"Report", "Parts", "Total"},
			[]any{"r", parts, total})})
		require.NoError(t, err)
	}
	report(3, 14)
	require.NoError(t, teller.check(t.Context(), "r"))
	report(4, 14)
	require.ErrorContains(t, teller.check(t.Context(), "r"), "want 3 and 14")
	report(3, 28)
	require.ErrorContains(t, teller.check(t.Context(), "r"), "want 3 and 14")
	report(3, 14)
	require.NoError(t, teller.request(t.Context(), "r"))
	require.ErrorContains(t, teller.check(t.Context(), "r"), "1 messages are left")
}

// A program that is stopped says so, and leaves no worker behind.
func TestStopped(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &stopAt{stop: stop, at: "the worker is killed"}
	err := run(ctx, []string{"-lease", "1s", "-part", "10ms", "-parts", "20"}, out)
	require.ErrorIs(t, err, context.Canceled)
	require.NotContains(t, out.text.String(), "no finished part twice")
}

// stopAt stops the program when it says something.
type stopAt struct {
	text strings.Builder
	stop func()
	at   string
}

func (s *stopAt) Write(p []byte) (int, error) {
	if strings.Contains(string(p), s.at) {
		s.stop()
	}
	return s.text.Write(p)
}

func TestFlags(t *testing.T) {
	t.Parallel()
	require.ErrorIs(t, run(t.Context(), []string{"-h"}, io.Discard), flag.ErrHelp)
	for arg, want := range map[string]string{
		"-parts=1": "-parts is 1, it must be from 2 to 1000",
		"-part=0s": "-part is 0s, it must be from 1ms to 1h",
		"-lease=0": "-lease is 0s, it must be from 500ms to 1h",
	} {
		require.ErrorContains(t, run(t.Context(), []string{arg}, io.Discard), want)
	}
}
