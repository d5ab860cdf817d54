package main

import (
	"os"
	"strings"
	"testing"

	"github.com/spanqueue/spanqueue/emulator/emulatortest"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	// The program starts itself as a worker; here that is the test binary.
	if len(os.Args) > 1 && os.Args[1] == "-worker" {
		main()
		return
	}
	emulatortest.Main(m)
}

func TestReports(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := run(t.Context(), []string{"-lease", "1s", "-part", "400ms", "-parts", "6"}, &out)
	require.NoError(t, err, out.String())
	text := out.String()
	require.Equal(t, 3, strings.Count(text, "in the database once: 6 parts, total 91; nothing is left in the queue"), text)
	require.Contains(t, text, "no finished part twice")
	require.Equal(t, 18, strings.Count(text, "] part "), "every part is made once: %s", text)
	require.Contains(t, text, "a report takes 2.4s, a lease lasts 1s")
}
