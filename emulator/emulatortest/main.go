package emulatortest

import (
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// Main runs the tests of a binary, ends the shared emulator, checks that no goroutine is left, and exits. It is all
// that TestMain has to do.
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
	if err := goleak.Find(LeakOptions()...); err != nil {
		fmt.Fprintf(out, "emulatortest: all tests passed, but goroutines are left: %v\n", err)
		return 1
	}
	return 0
}

// LeakOptions returns the goroutines that goleak is to overlook, which Google's client starts and nobody can end:
//
//   - the worker of go.opencensus.io/stats/view, which runs once that package is imported;
//   - connections to the metadata service of Google's cloud. Without SPANNER_EMULATOR_HOST the first client of a
//     process asks there where it runs, whatever its options say, and an answer or a connection that comes late stays
//     in an HTTP client of its own for a minute. The server's side of an HTTP connection is not overlooked.
func LeakOptions() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"),
		goleak.IgnoreAnyFunction("net/http.(*Transport).dialConnFor"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
	}
}
