package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
)

func TestMain(m *testing.M) {
	// The faults need a front of this process.
	if err := os.Unsetenv("SPANNER_EMULATOR_HOST"); err != nil {
		panic(err)
	}
	emulatortest.Main(m) // which fails when a goroutine is left
}

func lastLine(s string) string {
	s = strings.TrimRight(s, "\n")
	return s[strings.LastIndexByte(s, '\n')+1:]
}

func TestOneRideOneChargeOneMail(t *testing.T) {
	t.Parallel()
	rides := 60
	if os.Getenv("SPANQUEUE_LONG") != "" {
		rides = 200
	}
	for seed := 1; seed <= 3; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			var out, errOut bytes.Buffer
			code := run(t.Context(), []string{"-rides", fmt.Sprint(rides), "-seed", fmt.Sprint(seed)}, &out, &errOut)
			t.Log(out.String())
			require.Zero(t, code, errOut.String())
			require.Equal(t, fmt.Sprintf("%d rides, %d charges, %d mails: one each", rides, rides, rides), lastLine(out.String()))
		})
	}
}

func TestUnprotectedServiceChargesTwice(t *testing.T) {
	t.Parallel()
	var out, errOut bytes.Buffer
	code := run(t.Context(), []string{"--unprotected", "-rides", "60"}, &out, &errOut)
	t.Log(out.String())
	require.Zero(t, code, errOut.String())
	found := regexp.MustCompile(`: (\d+) double charges$`).FindStringSubmatch(lastLine(out.String()))
	require.NotNil(t, found)
	double, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	require.Positive(t, double)
}

func TestInterruptedInTheMiddle(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var errOut bytes.Buffer
	out := &watched{mark: "half way", seen: cancel}
	require.Equal(t, exitInterrupted, run(ctx, []string{"-rides", "60"}, out, &errOut), errOut.String())
	require.Equal(t, "interrupted; everything has ended", lastLine(out.String()))
}

// watched is an output that calls seen when the mark is written.
type watched struct {
	bytes.Buffer
	mark string
	seen func()
}

func (w *watched) Write(b []byte) (int, error) {
	if strings.Contains(string(b), w.mark) {
		w.seen()
	}
	return w.Buffer.Write(b)
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-rides 59":   "-rides is 59, it must be from 60 to 1000",
		"-rides 1001": "-rides is 1001, it must be from 60 to 1000",
		"-seed x":     "invalid value",
		"unprotected": `there are no arguments, found "unprotected"`,
	} {
		var out, errOut bytes.Buffer
		require.Equal(t, exitUsage, run(t.Context(), strings.Fields(args), &out, &errOut), args)
		require.Contains(t, errOut.String(), want)
		require.Empty(t, out.String())
	}
}
