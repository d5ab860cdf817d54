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

// report is what was printed at the end. Other numbers stand before the same names in the lines before it.
func (o outcome) report() string {
	return o.text[strings.LastIndex(o.text, "\nin ")+1:] // all of it where there is none
}

// number returns the number before a name in the report.
func (o outcome) number(t *testing.T, name string) int {
	t.Helper()
	found := regexp.MustCompile(`(\d+) +` + name).FindStringSubmatch(o.report())
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
	require.Positive(t, o.number(t, "answers lost or late "))
	require.GreaterOrEqual(t, strings.Count(o.text, "in the queues "), 4, "a line a second")
}

// The same for queue tables, and for those on the bare emulator, where there are no faults but those of the machines.
func TestShortRunOfTables(t *testing.T) {
	t.Parallel()
	for _, on := range []string{onFront, onBare} {
		t.Run(on, func(t *testing.T) {
			t.Parallel()
			o := torture(t, workerRole, "-queue", tableQueue, "-emulator", on, "-duration", "5s", "-workers", "3")
			require.Equal(t, exitGood, o.code)
			require.True(t, strings.HasSuffix(o.text, "\n0 lost, 0 twice\n"))
			require.Positive(t, o.number(t, "messages "))
			require.Positive(t, o.number(t, "kills "))
			require.Equal(t, on == onFront, o.number(t, "answers lost or late ") > 0)
		})
	}
}

// The proof can fail: a worker that acknowledges by a plain DELETE is found out.
func TestCarelessWorkerIsFoundOut(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{nativeQueue, tableQueue} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			o := torture(t, carelessRole, "-queue", kind, "-duration", "6s", "-workers", "3")
			require.Equal(t, exitBad, o.code)
			require.Positive(t, o.number(t, "twice"))
		})
	}
}

// And so is one that takes the message out before it does the work.
func TestLosingWorkerIsFoundOut(t *testing.T) {
	t.Parallel()
	o := torture(t, losingRole, "-duration", "6s", "-workers", "3")
	require.Equal(t, exitBad, o.code)
	require.Positive(t, o.number(t, "lost, "))
}

// One after the other, so that each has the machine for itself as far as other packages' tests leave it.
// The numbers that are asked for are far below what a busy machine brings.
func TestLongRuns(t *testing.T) {
	if os.Getenv("SPANQUEUE_LONG") == "" {
		t.Skip("16 minutes: set SPANQUEUE_LONG=1")
	}
	for _, c := range []struct {
		queue, emulator, duration string
		messages, kills           int
	}{
		{nativeQueue, onFront, "10m", 5_000, 100},
		{tableQueue, onFront, "3m", 1_500, 30},
		{tableQueue, onBare, "3m", 1_500, 30},
	} {
		t.Run(c.queue+" "+c.emulator, func(t *testing.T) {
			o := torture(t, workerRole, "-queue", c.queue, "-emulator", c.emulator, "-duration", c.duration)
			require.Equal(t, exitGood, o.code)
			t.Log(o.report())
			require.GreaterOrEqual(t, o.number(t, "messages "), c.messages)
			require.GreaterOrEqual(t, o.number(t, "kills "), c.kills)
		})
	}
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
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"-duration", "10ms"}, "-duration is 10ms, it must be at least 1s"},
		{[]string{"-duration", "x"}, "-duration"},
		{[]string{"-workers", "1"}, "-workers is 1, it must be from 2 to 16"},
		{[]string{"-workers", "17"}, "-workers is 17, it must be from 2 to 16"},
		{[]string{"-queue", "tables"}, `-queue is "tables", it must be native or table`},
		{[]string{"-queue", ""}, `-queue is "", it must be native or table`},
		{[]string{"-queue", "table", "-emulator", "off"}, `-emulator is "off", it must be front or bare`},
		{[]string{"-emulator", "bare"}, "-emulator is bare and -queue native: the bare emulator has no queues, -queue must be table"},
		{[]string{"-no-such-flag"}, "-no-such-flag"},
		{[]string{"argument"}, `found "argument"`},
	} {
		var out, errOut bytes.Buffer
		require.Equal(t, exitUsage, run(t.Context(), c.args, nil, &out, &errOut), "%v", c.args)
		require.Empty(t, out.String())
		require.Contains(t, errOut.String(), c.says)
	}
}
