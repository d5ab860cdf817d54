//go:build unix

package main

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"
)

const someDatabase = "projects/p/instances/i/databases/d"

// A database that does not answer is not waited for in silence, nor for long.
func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"stats", "--database", someDatabase, "--queue", "Q"},
		{"reap", "--database", someDatabase},
	} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { nobodyAnswers(t, args) })
		})
	}
}

func nobodyAnswers(t *testing.T, args []string) {
	root := newRootWith(func(ctx context.Context, _, _ string) (*spanner.Client, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	var out, errs bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs(args)
	begun := time.Now()
	err := root.ExecuteContext(t.Context())
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, whereIs(someDatabase)+" did not answer within 10s")
	require.Equal(t, 10*time.Second, time.Since(begun))
	require.Equal(t, "Waiting for "+whereIs(someDatabase)+" to answer, for 10s at most.\n", errs.String())
	require.Empty(t, out.String())
}

// One that answers is not bounded any longer, and nothing is said of one that answers soon.
func TestFirstAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var errs bytes.Buffer
		var later context.Context
		require.NoError(t, firstAnswer(t.Context(), &errs, someDatabase, 2*time.Second, func(ctx context.Context) error {
			time.Sleep(noticeAfter / 2) // in the bubble: no time passes
			later = ctx
			return nil
		}))
		time.Sleep(time.Minute)
		require.NoError(t, later.Err())
		require.Empty(t, errs.String())
	})
}

// The program says what to do, and its exit code is 1.
func TestProgramWithoutAnEmulator(t *testing.T) {
	t.Parallel()
	cmd := program([]string{"SPANNER_EMULATOR_HOST=localhost:1"}, "peek", "--database", someDatabase, "--queue", "Q", "--connect-timeout", "50ms")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // the code says it
	require.Equal(t, 1, cmd.ProcessState.ExitCode())
	require.Empty(t, out.String())
	require.Contains(t, errs.String(), "at localhost:1 (SPANNER_EMULATOR_HOST) did not answer within 50ms: is the emulator running? "+
		"`spanqueue emulator --addr localhost:1` starts one: ")
}
