//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/stretchr/testify/require"
)

// programEnv makes this test binary be the program.
const programEnv = "SPANQUEUE_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programEnv) != "" {
		main()
		return
	}
	emulatortest.Main(m)
}

// program makes the command line `spanqueue args`, with env added to an environment that names no emulator.
func program(env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "SPANNER_EMULATOR_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(append(cmd.Env, programEnv+"=1"), env...)
	return cmd
}

// result is how a program ended.
type result struct {
	code        int
	out, errors string
}

func runProgram(t *testing.T, args ...string) result {
	t.Helper()
	cmd := program(nil, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		require.True(t, errors.As(err, new(*exec.ExitError)), "%v", err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	r := runProgram(t, "version")
	require.Zero(t, r.code, r.errors)
	require.Regexp(t, `^spanqueue \S+ \(front \S+, go1\.\S+\)\n$`, r.out)
}

func TestHelpNamesEveryCommand(t *testing.T) {
	t.Parallel()
	r := runProgram(t)
	require.Zero(t, r.code, r.errors)
	for _, command := range newRoot().Commands() {
		require.Contains(t, r.out, command.Name())
		require.NotEmpty(t, command.Short, command.Name())
	}
}

func TestMistakesOnTheCommandLine(t *testing.T) {
	t.Parallel()
	for says, args := range map[string][]string{
		`unknown command "emulatr" for "spanqueue"`:      {"emulatr"},
		`unknown command "now" for "spanqueue emulator"`: {"emulator", "now"},
		"unknown flag: --port":                           {"emulator", "--port", "9010"},
		`--addr is "9010"; it must be host:port`:         {"emulator", "--addr", "9010"},
		`--addr is ""; it must be host:port`:             {"emulator", "--addr", ""},
		`--binary is "/nowhere": file does not exist`:    {"emulator", "--addr", "localhost:0", "--binary", "/nowhere"},
		"--lease is 1ms, want at least 50ms":             {"emulator", "--addr", "localhost:0", "--lease", "1ms"},
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			r := runProgram(t, args...)
			require.Equal(t, 1, r.code)
			require.Empty(t, r.out)
			require.Contains(t, r.errors, says)
			require.True(t, strings.HasPrefix(r.errors, "spanqueue: "), r.errors)
		})
	}
}
