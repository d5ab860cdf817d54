package boottime

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The kernel shows the time since it was booted, sleeps included, in a file too; in a container that may be the time since
// the container was started.
func TestClocksAreThoseOfTheKernel(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		t.Skip(err)
	}
	up, err := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
	require.NoError(t, err)
	boot, ok := read(unix.CLOCK_BOOTTIME)
	require.True(t, ok)
	require.Greater(t, boot.Seconds(), up-60)
	require.Less(t, boot, 20*365*24*time.Hour, "it counts from 1970")

	awake, ok := read(unix.CLOCK_MONOTONIC)
	require.True(t, ok)
	usual := time.Now()
	require.LessOrEqual(t, awake, boot+time.Minute)
	later, ok := read(unix.CLOCK_MONOTONIC)
	require.True(t, ok)
	require.InDelta(t, time.Since(usual).Seconds(), (later - awake).Seconds(), 60)
}
