package emulator

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// reader finds the process that waits on an emulator's lifeline: the only child that the emulator has.
func reader(t *testing.T, emulator int) (pid int) {
	t.Helper()
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", emulator, emulator))
	require.NoError(t, err)
	_, err = fmt.Sscan(string(children), &pid)
	require.NoError(t, err, "the emulator has no child")
	return pid
}

func TestParentDeathSignalAloneEndsTheEmulator(t *testing.T) {
	t.Parallel()
	parent, emulator, addr := startChild(t, "wait")
	pid := reader(t, emulator)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	eventually(t, func() bool { return gone(pid) }, "the lifeline's reader %d still runs", pid)
	require.False(t, gone(emulator))

	require.NoError(t, parent.Process.Kill())
	requireGone(t, emulator, addr)
}

func TestReaderOfTheLifelineEndsToo(t *testing.T) {
	t.Parallel()
	t.Run("after Close", func(t *testing.T) {
		t.Parallel()
		e := start(t, Options{})
		pid := reader(t, e.process.cmd.Process.Pid)
		require.NoError(t, e.Close())
		eventually(t, func() bool { return gone(pid) }, "the lifeline's reader %d still runs", pid)
	})
	t.Run("after a kill", func(t *testing.T) {
		t.Parallel()
		parent, emulator, addr := startChild(t, "wait")
		pid := reader(t, emulator)
		require.NoError(t, parent.Process.Kill())
		requireGone(t, emulator, addr)
		eventually(t, func() bool { return gone(pid) }, "the lifeline's reader %d still runs", pid)
	})
}
