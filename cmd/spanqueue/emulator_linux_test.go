package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// child finds the one child of a process, whichever thread has forked it.
func child(t *testing.T, parent int) (pid int) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if _, err := fmt.Sscan(string(text), &pid); err == nil {
			return pid
		}
	}
	t.Fatal("the program has no child")
	return 0
}

func TestDeathOfTheEmulatorIsAFailure(t *testing.T) {
	t.Parallel()
	r, err := startEmulator(t, nil, "--addr", "localhost:0")
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(child(t, r.cmd.Process.Pid), syscall.SIGKILL))
	require.Equal(t, 1, r.end(t))
	require.Contains(t, r.errors.String(), "spanqueue: emulator: ended by itself: ")
	require.Contains(t, r.errors.String(), "signal: killed")
	require.Contains(t, r.errors.String(), "Server address: ", "its last lines")
}
