//go:build unix

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"cloud.google.com/go/spanner"
	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
)

// A program that is killed tells nobody, but its pipes close.
func TestEmulatorEndsWithItsStandardInput(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer write.Close()
	r, err := startEmulatorReading(t, read, nil, "--addr", "localhost:0", "--end-with-stdin", "-v")
	require.NoError(t, read.Close())
	require.NoError(t, err)
	_, err = write.WriteString("what is written is of no concern\n")
	require.NoError(t, err)
	useSpanner(t, r.addr)
	require.NoError(t, write.Close())
	require.Zero(t, r.end(t), r.errors)
	requireRefused(t, r.addr)
	requireRefused(t, r.backend(t))
}

// Without the flag a closed standard input, which a program in the background often has, means nothing.
func TestEmulatorOutlivesItsStandardInput(t *testing.T) {
	t.Parallel()
	r, err := startEmulator(t, nil, "--addr", "localhost:0") // os/exec gives it /dev/null
	require.NoError(t, err)
	useSpanner(t, r.addr)
	require.NoError(t, r.cmd.Process.Signal(syscall.SIGTERM))
	require.Zero(t, r.end(t), r.errors)
}

// Somebody at a shell is told of flags and variables, and not of fields of structs.
func TestEmulatorErrorsSpeakOfFlags(t *testing.T) {
	t.Parallel()
	front := "SPANNER_EMULATOR_HOST=" + emulatortest.Shared(t).Addr()
	for _, c := range []struct {
		env  []string
		args []string
		says []string
	}{
		{args: []string{"--binary", "/nowhere/emulator_main"}, says: []string{`--binary is "/nowhere/emulator_main"`, "file does not exist"}},
		{args: []string{"--lease", "1ms"}, says: []string{"--lease is 1ms, want at least 50ms"}},
		{args: []string{"--row-deletion-interval", "1ms"}, says: []string{"--row-deletion-interval is 1ms"}},
		{args: []string{"--addr", "9010"}, says: []string{`--addr is "9010"`, "host:port"}},
		{env: []string{front}, args: []string{"--addr", "localhost:0"}, says: []string{"a front answers", "--addr asks for one at localhost:0", "unset the variable, or set --ignore-environment"}},
	} {
		r := &running{cmd: program(c.env, append([]string{"emulator"}, c.args...)...), errors: new(bytes.Buffer)}
		r.cmd.Stderr = r.errors
		require.Error(t, r.cmd.Run(), c.args)
		for _, says := range c.says {
			require.Contains(t, r.errors.String(), says)
		}
		require.NotContains(t, r.errors.String(), "Options")
	}
	_, err := emulator.Start(t.Context(), emulator.Options{StartTimeout: 1})
	require.ErrorContains(t, err, "Options.StartTimeout")
	require.ErrorContains(t, flagError{err}, "not ready within 1ns")
	require.ErrorIs(t, flagError{err}, err)
}

// A program that expects its database to be there needs no other program to create it.
func TestEmulatorCreatesDatabases(t *testing.T) {
	t.Parallel()
	ddl := filepath.Join(t.TempDir(), "schema.sql")
	require.NoError(t, os.WriteFile(ddl, []byte(`-- orders; and what becomes of them
CREATE QUEUE Orders (
  Id INT64 NOT NULL, Payload STRING(MAX) NOT NULL,
) PRIMARY KEY (Id);
CREATE TABLE Shipped (Id INT64 NOT NULL, Note STRING(MAX) NOT NULL DEFAULT (';')) PRIMARY KEY (Id);
`), 0o600))
	names := []string{"projects/p/instances/one/databases/shop", "projects/p/instances/two/databases/shop"}
	r, err := startEmulator(t, nil, "--addr", "localhost:0", "--database", names[0], "--database", names[1], "--ddl", ddl)
	require.NoError(t, err)
	for _, name := range names {
		client, err := spanner.NewClientWithConfig(t.Context(), name, spanner.ClientConfig{DisableNativeMetrics: true}, emulator.ClientOptions(r.addr)...)
		require.NoError(t, err)
		defer client.Close()
		_, err = client.Apply(t.Context(), []*spanner.Mutation{spanner.Send("Orders", spanner.Key{1}, "apples"), spanner.Insert("Shipped", []string{"Id"}, []any{1})})
		require.NoError(t, err)
	}
	require.NoError(t, r.cmd.Process.Signal(syscall.SIGTERM))
	require.Zero(t, r.end(t), r.errors)

	cut := filepath.Join(t.TempDir(), "cut.sql")
	require.NoError(t, os.WriteFile(cut, []byte(`CREATE TABLE T (S STRING(MAX) DEFAULT ('\`), 0o600))
	wrong := filepath.Join(t.TempDir(), "wrong.sql")
	require.NoError(t, os.WriteFile(wrong, []byte("CREATE QUEUE Q (Id INT64) PRIMARY KEY (Id)"), 0o600))
	for says, args := range map[string][]string{
		`--ddl is "x.sql", but no --database`: {"--ddl", "x.sql"},
		"--ddl: open /nowhere/x.sql":          {"--ddl", "/nowhere/x.sql", "--database", names[0]},
		"cannot be divided into statements":   {"--ddl", cut, "--database", names[0]},
		"no Payload column":                   {"--ddl", wrong, "--database", names[0]},
		`database name "shop" is not`:         {"--database", "shop"},
	} {
		r := runProgram(t, append([]string{"emulator", "--addr", "localhost:0"}, args...)...)
		require.Equal(t, 1, r.code, says)
		require.Empty(t, r.out, "no address is told")
		require.NotContains(t, r.errors, "RPCs by method")
		require.Contains(t, r.errors, says)
	}
}

func TestEmulatorIgnoresTheEnvironmentWhenTold(t *testing.T) {
	t.Parallel()
	r, err := startEmulator(t, []string{"SPANNER_EMULATOR_HOST=nonsense"}, "--addr", "localhost:0", "--ignore-environment")
	require.NoError(t, err)
	useSpanner(t, r.addr)
	require.NoError(t, r.cmd.Process.Signal(syscall.SIGTERM))
	require.Zero(t, r.end(t), r.errors)
}

func TestEmulatorFlagsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--abort-probability", "1.5"}, {"--abort-probability", "NaN"}, {"--abort-probability", "-1"}, {"--latency", "5"}, {"--latency", "nowhere=1ms"}, {"--seed", "-1"},
	} {
		r := runProgram(t, append([]string{"emulator"}, args...)...)
		require.Equal(t, 1, r.code, args)
		require.Empty(t, r.out, args)
		require.Contains(t, r.errors, args[0])
	}
}
