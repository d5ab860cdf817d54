package emulatortest

import (
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/spanqueue/spanqueue/emulator/internal/leak"
)

// Main runs the tests of a binary, ends the shared emulator, checks that no goroutine is left, and exits. It is all
// that TestMain has to do. The check overlooks the few goroutines that Google's client starts and nobody can end.
func Main(m *testing.M) {
	os.Exit(run(m, &shared, os.Stderr))
}

// runner is what Main needs of a *testing.M.
type runner interface{ Run() int }

func run(m runner, l *lazy, out io.Writer) int {
	code := m.Run()
	if err := l.close(); err != nil {
		fmt.Fprintf(out, "emulatortest: close the shared emulator: %v\n", err)
		code = max(code, 1)
	}
	if code != 0 {
		return code // a failed test may well leave goroutines, and its own message is the one to read
	}
	if err := goleak.Find(leak.Overlooked()...); err != nil {
		fmt.Fprintf(out, "emulatortest: all tests passed, but goroutines are left: %v\n", err)
		return 1
	}
	return 0
}
