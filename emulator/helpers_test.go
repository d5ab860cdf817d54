package emulator

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// script writes an executable shell script called name into dir. The lock keeps other tests from forking meanwhile: a
// child that inherits the open file for a moment makes running it fail with "text file busy".
func script(t *testing.T, dir, name, body string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o755))
	return path
}

// realEmulator is the path of the emulator of this machine, for scripts that stand for something around it.
func realEmulator(t *testing.T) string {
	t.Helper()
	f, err := find(t.Context(), Options{}, thisMachine(Options{IgnoreEnvironment: true}), "")
	require.NoError(t, err)
	require.NotEmpty(t, f.binary, "these tests need an emulator_main")
	return f.binary
}

// eventually waits for a condition that another process brings about and that nothing reports.
func eventually(t *testing.T, holds func() bool, what string, args ...any) {
	t.Helper()
	require.Eventually(t, holds, 3*time.Second, 5*time.Millisecond, append([]any{what}, args...)...)
}

// awaitEnd waits for an emulator that ends without Close.
func awaitEnd(t *testing.T, e *Emulator) {
	t.Helper()
	select {
	case <-e.Done():
	case <-time.After(3 * time.Second):
		t.Fatal("the emulator has not ended")
	}
}
