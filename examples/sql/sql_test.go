package main

import (
	"strings"
	"testing"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { emulatortest.Main(m) }

func TestPointsAreGrantedOnce(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out), out.String())
	text := out.String()
	require.Contains(t, text, "order o3: rolled back, and its message with it")
	require.Contains(t, text, "called 4 times for 3 messages; commits aborted: 1, answers lost: 1")
	require.Contains(t, text, "ada has 20 points\nbob has 5 points\n")
	require.Contains(t, text, "messages left in the queue: 0")
}
