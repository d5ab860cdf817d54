package front_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
)

// lone is a bare emulator of the test's own, known by its process id.
type lone struct {
	t    *testing.T
	addr string
	exe  string
	pid  int
}

func newLone(t *testing.T) *lone {
	t.Helper()
	e := emulatortest.New(t, emulator.Options{NoFront: true})
	l := &lone{t: t, addr: e.BackendAddr()}
	l.pid = listener(t, l.addr)
	var err error
	l.exe, err = os.Readlink(fmt.Sprintf("/proc/%d/exe", l.pid))
	require.NoError(t, err)
	return l
}

func (l *lone) signal(s syscall.Signal) {
	l.t.Helper()
	require.NoError(l.t, syscall.Kill(l.pid, s))
}

// stop stops the emulator, and waits until every thread of it stands still. It goes on with SIGCONT, at the latest when
// the test has ended.
func (l *lone) stop() {
	l.t.Helper()
	pid := l.pid
	l.signal(syscall.SIGSTOP)
	l.t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	eventually(l.t, "the emulator does not stop", func() bool {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		require.NoError(l.t, err)
		for _, task := range tasks {
			text, err := os.ReadFile(task)
			if err != nil {
				continue // that thread has ended
			}
			if state := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))[0]; state != "T" {
				return false
			}
		}
		return len(tasks) > 0
	})
}

// restart starts another emulator at the same address, after the first was killed.
func (l *lone) restart() {
	l.t.Helper()
	cmd := exec.Command(l.exe, "--host_port", l.addr)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var said bytes.Buffer
	started, ended := make(chan error, 1), make(chan error, 1)
	out, err := cmd.StderrPipe()
	require.NoError(l.t, err)
	go func() {
		// The signal comes when the thread that has forked it ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			said.WriteString(lines.Text() + "\n")
			if strings.Contains(lines.Text(), "Server address: ") {
				started <- nil
				break
			}
		}
		for lines.Scan() {
		}
		ended <- cmd.Wait()
		select {
		case started <- errors.New("the emulator has ended: " + said.String()):
		default:
		}
	}()
	require.NoError(l.t, <-started)
	l.pid = cmd.Process.Pid
	l.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
}

// listener is the process that listens at an address.
func listener(t *testing.T, addr string) int {
	t.Helper()
	inodes := make(map[string]bool)
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	want, err := strconv.Atoi(port)
	require.NoError(t, err)
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) < 10 || f[3] != "0A" { // not listening
				continue
			}
			at, err := hex.DecodeString(f[1][strings.LastIndexByte(f[1], ':')+1:])
			require.NoError(t, err)
			if int(at[0])<<8|int(at[1]) == want {
				inodes["socket:["+f[9]+"]"] = true
			}
		}
	}
	descriptors, err := filepath.Glob("/proc/[0-9]*/fd/*")
	require.NoError(t, err)
	for _, d := range descriptors {
		if target, err := os.Readlink(d); err == nil && inodes[target] {
			pid, err := strconv.Atoi(strings.Split(d, "/")[2])
			require.NoError(t, err)
			return pid
		}
	}
	require.FailNow(t, "nobody listens", addr)
	return 0
}

func dialed(t *testing.T, addr string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func createInstance(r *raw, name string) error {
	parent, id, _ := strings.Cut(name, "/instances/")
	_, err := instancepb.NewInstanceAdminClient(r.conn).CreateInstance(r.ctx(), &instancepb.CreateInstanceRequest{
		Parent: parent, InstanceId: id, Instance: &instancepb.Instance{Config: parent + "/instanceConfigs/emulator-config", DisplayName: id, NodeCount: 1},
	})
	return err
}
