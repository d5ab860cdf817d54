//go:build unix

package emulator

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/spanqueue/spanqueue/emulator/internal/leak"
)

// childEnv makes this test binary start an emulator and then end in the way that the variable names, without Close.
const childEnv = "SPANQUEUE_TEST_CHILD"

func TestMain(m *testing.M) {
	if way := os.Getenv(childEnv); way != "" {
		child(way)
		return
	}
	goleak.VerifyTestMain(m, leak.Overlooked()...)
}

// child tells the emulator's process id and address on standard output.
func child(way string) {
	m := thisMachine(Options{IgnoreEnvironment: true})
	if dir, ok := strings.CutPrefix(way, "docker:"); ok {
		m.path, m.sdkRoots = []string{dir}, nil
		way = "wait"
	}
	e, err := startOn(context.Background(), Options{IgnoreEnvironment: true}, m)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(e.process.cmd.Process.Pid, e.BackendAddr())
	switch way {
	case "wait":
		select {}
	case "exit":
		os.Exit(3)
	case "panic":
		panic("as planned")
	case "goroutine panic":
		go func() { panic("as planned, elsewhere") }()
		select {}
	}
}

// startChild runs this test binary again and returns when its emulator answers.
func startChild(t *testing.T, way string) (c *exec.Cmd, emulator int, addr string) {
	t.Helper()
	c = exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childEnv+"="+way)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, line)
	_, err = fmt.Sscan(line, &emulator, &addr)
	require.NoError(t, err, line)
	t.Cleanup(func() { // a test that has failed leaves nothing either
		if !gone(emulator) {
			_ = syscall.Kill(emulator, syscall.SIGKILL)
		}
	})
	return c, emulator, addr
}

// gone says whether a process has ended. One that has ended and that init has not reaped yet counts.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) == syscall.ESRCH {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return os.IsNotExist(err) && runtime.GOOS == "linux"
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "Z")
}

func requireGone(t *testing.T, emulator int, addr string) {
	t.Helper()
	eventually(t, func() bool { return gone(emulator) }, "emulator %d still runs", emulator)
	_, err := probeAddr(t.Context(), addr)
	require.Error(t, err, "it still answers")
}

func TestEmulatorEndsWithItsParent(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"exit", "panic", "goroutine panic"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			_, emulator, addr := startChild(t, way)
			requireGone(t, emulator, addr)
		})
	}
	for name, signal := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "interrupted": syscall.SIGINT, "terminated": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parent, emulator, addr := startChild(t, "wait")
			_, err := probeAddr(t.Context(), addr)
			require.NoError(t, err)
			require.False(t, gone(emulator))
			require.NoError(t, parent.Process.Signal(signal))
			requireGone(t, emulator, addr)
		})
	}
}

func TestLifelineAloneEndsTheEmulator(t *testing.T) {
	t.Parallel()
	e := start(t, Options{})
	require.NoError(t, e.process.pipe.Close()) // what the end of this process would do, without the kernel's signal
	awaitEnd(t, e)
	require.ErrorIs(t, e.Err(), ErrDied)
	require.ErrorContains(t, e.Err(), "signal: killed")
}

func TestEmulatorOutlivesTheThreadThatStartedIt(t *testing.T) {
	t.Parallel()
	started := make(chan *Emulator)
	go func() {
		runtime.LockOSThread()
		e, err := Start(context.Background(), Options{IgnoreEnvironment: true})
		if err != nil {
			t.Error(err)
		}
		started <- e
	}()
	e := <-started
	require.NotNil(t, e)
	defer e.Close()
	endIdleThreads()
	require.NoError(t, e.CreateDatabase(t.Context(), database))
	require.NoError(t, e.Err())
}

// endIdleThreads binds so many goroutines to threads at once that those which are idle are among them, and ends them.
func endIdleThreads() {
	var bound, ended sync.WaitGroup
	release := make(chan struct{})
	bound.Add(200)
	for range 200 {
		ended.Go(func() {
			runtime.LockOSThread() // without unlocking: the thread ends with the goroutine
			bound.Done()
			<-release
		})
	}
	bound.Wait()
	close(release)
	ended.Wait()
}
