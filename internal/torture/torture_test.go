package main

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
)

// Roles in which the test binary runs itself.
const (
	wholeRole    = "torture-whole"    // the program
	carelessRole = "torture-careless" // a worker that acknowledges without asserting
	losingRole   = "torture-losing"   // a worker that acknowledges before it works, in a transaction of its own
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch as := func(r runners) { os.Exit(beWorker(os.Args[2:], os.Stdin, os.Stdout, os.Stderr, r)) }; os.Args[1] {
		case workerRole:
			as(processors)
		case carelessRole:
			as(carelessly)
		case losingRole:
			as(losing)
		case wholeRole:
			wholeMain()
		}
	}
	emulatortest.Main(m)
}

// outcome is what a run in this process has printed.
type outcome struct {
	code int
	text string
}

func torture(t *testing.T, role string, args ...string) outcome {
	t.Helper()
	var out, errOut bytes.Buffer
	code := run(t.Context(), args, ownWorkers(role), &out, &errOut)
	text := out.String() + errOut.String()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("exit code %d\n%s", code, text)
		}
	})
	return outcome{code, text}
}

// number returns the number before a name in the report.
func (o outcome) number(t *testing.T, name string) int {
	t.Helper()
	found := regexp.MustCompile(`(\d+) +` + name).FindStringSubmatch(o.text)
	require.NotNil(t, found, "no %q in the report", name)
	n, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	return n
}

func TestShortRun(t *testing.T) {
	t.Parallel()
	o := torture(t, workerRole, "-duration", "5s", "-workers", "3")
	require.Equal(t, exitGood, o.code)
	require.True(t, strings.HasSuffix(o.text, "\n0 lost, 0 twice\n"))
	require.Positive(t, o.number(t, "messages "))
	require.Positive(t, o.number(t, "kills "))
	require.Positive(t, o.number(t, "answers lost"))
	require.GreaterOrEqual(t, strings.Count(o.text, "in the queues "), 4, "a line a second")
}

// The proof can fail: a worker that acknowledges by a plain DELETE is found out.
func TestCarelessWorkerIsFoundOut(t *testing.T) {
	t.Parallel()
	o := torture(t, carelessRole, "-duration", "6s", "-workers", "3")
	require.Equal(t, exitBad, o.code)
	require.Positive(t, o.number(t, "twice"))
}

// And so is one that takes the message out before it does the work.
func TestLosingWorkerIsFoundOut(t *testing.T) {
	t.Parallel()
	o := torture(t, losingRole, "-duration", "6s", "-workers", "3")
	require.Equal(t, exitBad, o.code)
	require.Positive(t, o.number(t, "lost, "))
}

func TestLongRun(t *testing.T) {
	if os.Getenv("SPANQUEUE_LONG") == "" {
		t.Skip("10 minutes: set SPANQUEUE_LONG=1")
	}
	t.Parallel()
	o := torture(t, workerRole, "-duration", "10m")
	t.Log(o.text[strings.LastIndex(o.text, "\nin "):])
	require.Equal(t, exitGood, o.code)
	require.GreaterOrEqual(t, o.number(t, "messages "), 20_000)
	require.GreaterOrEqual(t, o.number(t, "kills "), 200)
}

// A run that is broken off ends everything and says so.
func TestBrokenOff(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	w := &firstLine{seen: cancel}
	began := time.Now()
	code := run(ctx, []string{"-duration", "1h"}, ownWorkers(workerRole), w, os.Stderr)
	require.Equal(t, exitInterrupted, code)
	require.Contains(t, w.String(), "interrupted; everything has ended")
	require.Less(t, time.Since(began), time.Minute)
}

// firstLine calls a function at the first thing that is written.
type firstLine struct {
	bytes.Buffer
	seen func()
}

func (f *firstLine) Write(p []byte) (int, error) {
	f.seen()
	return f.Buffer.Write(p)
}

func TestRefusedFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"-duration", "10ms"}, {"-duration", "x"}, {"-workers", "1"}, {"-workers", "17"}, {"-no-such-flag"}, {"argument"},
	} {
		var out, errOut bytes.Buffer
		require.Equal(t, exitUsage, run(t.Context(), args, nil, &out, &errOut), "%v", args)
		require.Empty(t, out.String())
		require.NotEmpty(t, errOut.String())
	}
}
