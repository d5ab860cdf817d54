package main

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spanqueue/spanqueue/emulator"
	"github.com/spanqueue/spanqueue/emulator/emulatortest"
)

// The emulator that is paused is the one that was asked for, also where there are several.
func TestListener(t *testing.T) {
	t.Parallel()
	pids := make(map[int]bool)
	for range 2 {
		e := emulatortest.New(t, emulator.Options{})
		_, port, err := net.SplitHostPort(e.BackendAddr())
		require.NoError(t, err)
		p := listener(port)
		require.NotNil(t, p)
		pids[p.Pid] = true
	}
	require.Len(t, pids, 2)
	require.Nil(t, listener("0"))
	require.Nil(t, listener(""))
}
