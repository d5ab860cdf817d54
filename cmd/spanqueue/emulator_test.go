//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	databaseadmin "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	instanceadmin "cloud.google.com/go/spanner/admin/instance/apiv1"
	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
)

// running is `spanqueue emulator`, once it has told its address.
type running struct {
	cmd    *exec.Cmd
	addr   string
	line   string
	out    *bufio.Reader
	errors *bytes.Buffer // read after the end
}

// errEarly is returned, wrapped, for a program that ended without telling an address.
var errEarly = errors.New("no address")

func startEmulator(t *testing.T, env []string, args ...string) (*running, error) {
	t.Helper()
	return startEmulatorReading(t, nil, env, args...)
}

// startEmulatorReading starts it with that standard input; nil is an empty one.
func startEmulatorReading(t *testing.T, in *os.File, env []string, args ...string) (*running, error) {
	t.Helper()
	r := &running{cmd: program(env, append([]string{"emulator"}, args...)...), errors: new(bytes.Buffer)}
	if in != nil {
		r.cmd.Stdin = in
	}
	r.cmd.Stderr = r.errors
	pipe, err := r.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, r.cmd.Start())
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		_ = r.cmd.Wait()
	})
	r.out = bufio.NewReader(pipe)
	if r.line, err = r.out.ReadString('\n'); err != nil {
		_ = r.cmd.Wait()
		return nil, fmt.Errorf("%w: %s", errEarly, r.errors)
	}
	r.addr = strings.TrimSuffix(strings.TrimPrefix(r.line, "SPANNER_EMULATOR_HOST="), "\n")
	return r, nil
}

// end waits for the program's end and returns its exit code.
func (r *running) end(t *testing.T) (code int) {
	t.Helper()
	rest := make(chan string, 1)
	go func() {
		var b bytes.Buffer
		_, _ = b.ReadFrom(r.out)
		rest <- b.String()
	}()
	select {
	case text := <-rest:
		require.Empty(t, text, "standard output has one line")
	case <-time.After(30 * time.Second):
		t.Fatal("the program has not ended")
	}
	_ = r.cmd.Wait()
	return r.cmd.ProcessState.ExitCode()
}

// backend finds the bare emulator's address in what -v shows. Call it after the end.
func (r *running) backend(t *testing.T) string {
	t.Helper()
	_, after, ok := strings.Cut(r.errors.String(), "Server address: ")
	require.True(t, ok, r.errors)
	addr, _, ok := strings.Cut(after, `"`)
	require.True(t, ok, r.errors)
	return addr
}

func requireRefused(t *testing.T, addr string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err == nil {
		conn.Close()
	}
	require.ErrorIs(t, err, syscall.ECONNREFUSED, "somebody still listens at %s", addr)
}

// useSpanner creates a database at addr as any program would, and commits to it.
func useSpanner(t *testing.T, addr string) {
	t.Helper()
	opts := emulator.ClientOptions(addr)
	instances, err := instanceadmin.NewInstanceAdminClient(t.Context(), opts...)
	require.NoError(t, err)
	defer instances.Close()
	created, err := instances.CreateInstance(t.Context(), &instancepb.CreateInstanceRequest{
		Parent: "projects/p", InstanceId: "test",
		Instance: &instancepb.Instance{Config: "projects/p/instanceConfigs/emulator-config", NodeCount: 1},
	})
	require.NoError(t, err)
	_, err = created.Wait(t.Context())
	require.NoError(t, err)

	databases, err := databaseadmin.NewDatabaseAdminClient(t.Context(), opts...)
	require.NoError(t, err)
	defer databases.Close()
	op, err := databases.CreateDatabase(t.Context(), &databasepb.CreateDatabaseRequest{
		Parent: "projects/p/instances/test", CreateStatement: "CREATE DATABASE points",
		ExtraStatements: []string{"CREATE TABLE Account (Id INT64 NOT NULL) PRIMARY KEY (Id)"},
	})
	require.NoError(t, err)
	_, err = op.Wait(t.Context())
	require.NoError(t, err)

	client, err := spanner.NewClientWithConfig(t.Context(), "projects/p/instances/test/databases/points",
		spanner.ClientConfig{DisableNativeMetrics: true}, opts...)
	require.NoError(t, err)
	defer client.Close()
	_, err = client.Apply(t.Context(), []*spanner.Mutation{spanner.Insert("Account", []string{"Id"}, []any{1})})
	require.NoError(t, err)
}

func TestEmulatorServesUntilItIsSignalled(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			r, err := startEmulator(t, nil, "--addr", "localhost:0", "-v")
			require.NoError(t, err)
			require.Regexp(t, `^SPANNER_EMULATOR_HOST=localhost:[1-9][0-9]*\n$`, r.line)
			useSpanner(t, r.addr)

			require.NoError(t, r.cmd.Process.Signal(signal))
			require.Zero(t, r.end(t), r.errors)
			requireRefused(t, r.addr)
			requireRefused(t, r.backend(t))
		})
	}
}

func TestEmulatorEndsWithWorkUnderWay(t *testing.T) {
	t.Parallel()
	r, err := startEmulator(t, nil, "--addr", "localhost:0")
	require.NoError(t, err)
	useSpanner(t, r.addr)
	client, err := spanner.NewClientWithConfig(t.Context(), "projects/p/instances/test/databases/points",
		spanner.ClientConfig{DisableNativeMetrics: true}, emulator.ClientOptions(r.addr)...)
	require.NoError(t, err)
	defer client.Close()
	// A hand-held transaction: the client itself would go on with one of its own for long after the end.
	tx, err := spanner.NewReadWriteStmtBasedTransaction(t.Context(), client)
	require.NoError(t, err)
	_, err = tx.Update(t.Context(), spanner.NewStatement("DELETE FROM Account WHERE true"))
	require.NoError(t, err)
	require.NoError(t, r.cmd.Process.Signal(syscall.SIGTERM))
	require.Zero(t, r.end(t), r.errors)
	require.Regexp(t, `^RPCs by method:\n( +[1-9][0-9]*  [A-Za-z]+\n)+$`, r.errors.String(), "a wanted end is quiet but for this")
	require.Regexp(t, `\n +1  CreateDatabase\n`, r.errors.String())
}

// startAtFixedPort starts the program at a port that is named beforehand. The ports are below those that systems hand
// out for port 0, so that no other test has one by chance; env tells what else the program's environment has.
func startAtFixedPort(t *testing.T, env func(addr string) []string) *running {
	t.Helper()
	for {
		addr := fmt.Sprintf("localhost:%d", 12000+rand.IntN(8000))
		r, err := startEmulator(t, env(addr), "--addr", addr)
		if err != nil && strings.Contains(err.Error(), "in use") {
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "SPANNER_EMULATOR_HOST="+addr+"\n", r.line)
		return r
	}
}

func TestEmulatorListensWhereItIsTold(t *testing.T) {
	t.Parallel()
	r := startAtFixedPort(t, func(string) []string { return nil })
	useSpanner(t, r.addr)
}

func TestVariableForTheClientsMayBeSetAlready(t *testing.T) {
	t.Parallel()
	r := startAtFixedPort(t, func(addr string) []string { return []string{"SPANNER_EMULATOR_HOST=" + addr} })
	useSpanner(t, r.addr)
}

func TestEmulatorThatRunsGetsAFrontAndStays(t *testing.T) {
	t.Parallel()
	e := emulatortest.New(t, emulator.Options{NoFront: true})
	r, err := startEmulator(t, []string{"SPANNER_EMULATOR_HOST=" + e.Addr()}, "--addr", "localhost:0")
	require.NoError(t, err)
	useSpanner(t, r.addr)
	require.NoError(t, r.cmd.Process.Signal(syscall.SIGTERM))
	require.Zero(t, r.end(t), r.errors)
	require.NoError(t, e.CreateInstance(t.Context(), "projects/p/instances/other"))
}

func TestPortInUseIsRefused(t *testing.T) {
	t.Parallel()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer lis.Close()
	bare := emulatortest.New(t, emulator.Options{NoFront: true}) // lets others share its port
	for name, addr := range map[string]string{
		"by any program":   fmt.Sprintf("localhost:%d", lis.Addr().(*net.TCPAddr).Port),
		"by an emulator":   bare.Addr(),
		"by another front": emulatortest.Shared(t).Addr(),
	} {
		t.Run(name, func(t *testing.T) {
			r := runProgram(t, "emulator", "--addr", addr)
			require.Equal(t, 1, r.code)
			require.Empty(t, r.out)
			require.Contains(t, r.errors, "the address "+addr+" is in use by another program")
		})
	}
}

func TestEmulatorMakesItHarder(t *testing.T) {
	t.Parallel()
	const commit = 50 * time.Millisecond
	r, err := startEmulator(t, nil, "--addr", "localhost:0", "--latency", "1ms,commit="+commit.String(), "--abort-probability", "0.5", "--seed", "7")
	require.NoError(t, err)
	useSpanner(t, r.addr)
	client, err := spanner.NewClientWithConfig(t.Context(), "projects/p/instances/test/databases/points",
		spanner.ClientConfig{DisableNativeMetrics: true}, emulator.ClientOptions(r.addr)...)
	require.NoError(t, err)
	defer client.Close()
	runs := 0
	for range 20 {
		begun := time.Now()
		_, err := client.ReadWriteTransaction(t.Context(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			runs++
			_, err := tx.Update(ctx, spanner.NewStatement("DELETE FROM Account WHERE Id = 7"))
			return err
		})
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(begun), commit)
	}
	require.Greater(t, runs, 20, "nothing was aborted")
	require.NoError(t, r.cmd.Process.Signal(syscall.SIGTERM))
	require.Zero(t, r.end(t), r.errors)
}
