package emulatortest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mainEnv makes this test binary call Main's inside with a stand-in for the tests, which the variable names.
const mainEnv = "EMULATORTEST_TESTS"

func TestMain(m *testing.M) {
	if name := os.Getenv(mainEnv); name != "" {
		os.Exit(run(standIn(name), &shared, os.Stdout))
	}
	Main(m)
}

// standIn stands for the tests of a binary.
type standIn string

func (s standIn) Run() int {
	e, err := shared.get()
	if err != nil {
		fmt.Println(err)
		return 9
	}
	fmt.Println("backend", e.BackendAddr())
	switch s {
	case "fail":
		return 4
	case "fail and leak":
		go leaked()
		return 4
	case "leak":
		go leaked()
	}
	return 0
}

func leaked() { select {} }

func runMain(t *testing.T, tests string) (code int, output string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), mainEnv+"="+tests)
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func TestMainEndsTheEmulatorAndChecksForLeaks(t *testing.T) {
	t.Parallel()
	for tests, want := range map[string]struct {
		code int
		says string
	}{
		"pass":          {0, ""},
		"fail":          {4, ""},
		"leak":          {1, "all tests passed, but goroutines are left"},
		"fail and leak": {4, ""},
	} {
		t.Run(tests, func(t *testing.T) {
			t.Parallel()
			code, output := runMain(t, tests)
			require.Equal(t, want.code, code, output)
			line, rest, _ := strings.Cut(output, "\n")
			require.Contains(t, rest, want.says)
			if want.says == "" {
				require.Empty(t, rest)
			} else {
				require.Contains(t, rest, "emulatortest.leaked")
			}

			addr, ok := strings.CutPrefix(line, "backend ")
			require.True(t, ok, output)
			_, err := net.Dial("tcp", addr)
			require.Error(t, err, "the emulator still runs")
		})
	}
}

func TestMainWithoutEmulatorStartsNone(t *testing.T) {
	t.Parallel()
	var l lazy
	require.NoError(t, l.close())
	require.Nil(t, l.e)
}

func TestLazyStartsOne(t *testing.T) {
	t.Parallel()
	var l lazy
	results := make(chan *Emulator, 8)
	for range cap(results) {
		go func() {
			e, err := l.get()
			if err != nil {
				t.Error(err)
			}
			results <- e
		}()
	}
	first := <-results
	require.NotNil(t, first)
	for range cap(results) - 1 {
		require.Same(t, first, <-results)
	}
	require.NoError(t, l.close())
	<-first.Done()
}
