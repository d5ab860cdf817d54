// Package leak names the goroutines that a leak check of tests overlooks, for the TestMain of packages that use
// Google's Spanner client.
package leak

import "go.uber.org/goleak"

// Overlooked returns the goroutines that the Spanner client starts and nobody can end:
//
//   - the worker of go.opencensus.io/stats/view, which runs once that package is imported;
//   - the question to the metadata service of Google's cloud where this process runs. Without SPANNER_EMULATOR_HOST
//     the first client of a process asks it, by name and by address, whatever its options say. Elsewhere the look-up
//     and the dialling may take seconds after the client has stopped waiting, and a connection that comes about is
//     kept for a minute.
//
// So what is hidden of our own is a look-up that has not ended and a client's side of an HTTP connection; the server's
// side is not.
func Overlooked() []goleak.Option {
	options := []goleak.Option{goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start")}
	for _, function := range []string{
		"net.(*Resolver).LookupHost",
		"net.(*Resolver).tryOneName",
		"net.cgoLookupHostIP",
		"net/http.(*Transport).dialConnFor",
		"net/http.(*persistConn).readLoop",
		"net/http.(*persistConn).writeLoop",
	} {
		options = append(options, goleak.IgnoreAnyFunction(function))
	}
	return options
}
