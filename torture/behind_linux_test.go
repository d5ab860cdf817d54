package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// wholeMain is the program in a process of its own, as main has it.
func wholeMain() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[2:], ownWorkers(workerRole), os.Stdout, os.Stderr))
}

// startWhole starts the program and returns it with all that it has started, once it is at work.
func startWhole(t *testing.T) (*exec.Cmd, []int) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, wholeRole, "-duration", "10m")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan(), "the program printed nothing")
	go func() {
		for lines.Scan() { // or it would block
		}
	}()
	all := descendants(t, cmd.Process.Pid)
	require.GreaterOrEqual(t, len(all), 5, "four workers and the emulator")
	return cmd, all
}

func TestNothingStaysBehindAKilledRun(t *testing.T) {
	t.Parallel()
	cmd, all := startWhole(t)
	for _, pid := range children(t)[cmd.Process.Pid] { // the workers and the emulator: what is frozen cannot end by itself
		require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	}
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	gone(t, all)
}

func TestNothingStaysBehindAnInterruptedRun(t *testing.T) {
	t.Parallel()
	cmd, all := startWhole(t)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit)
	require.Equal(t, exitInterrupted, exit.ExitCode())
	gone(t, all)
}

func gone(t *testing.T, all []int) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, pid := range all {
			if alive(pid) {
				return false
			}
		}
		return true
	}, 20*time.Second, 20*time.Millisecond, "%v", all)
}

// alive says whether the process exists and is more than an entry in the table of processes.
func alive(pid int) bool {
	stat, err := os.ReadFile(procPath(pid, "stat"))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

func procPath(pid int, file string) string { return fmt.Sprintf("/proc/%d/%s", pid, file) }

// descendants finds the processes that a process has started, and theirs.
func descendants(t *testing.T, pid int) []int {
	t.Helper()
	children := children(t)
	var all []int
	for next := []int{pid}; len(next) > 0; next = next[1:] {
		all = append(all, children[next[0]]...)
		next = append(next, children[next[0]]...)
	}
	return all
}

// children finds all processes by their parents.
func children(t *testing.T) map[int][]int {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	children := make(map[int][]int)
	for _, path := range paths {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		end := strings.LastIndexByte(string(stat), ')')
		var child, parent int
		var state string
		if _, err := fmt.Sscan(string(stat), &child); err != nil {
			continue
		}
		if _, err := fmt.Sscan(string(stat[end+1:]), &state, &parent); err != nil {
			continue
		}
		children[parent] = append(children[parent], child)
	}
	return children
}
