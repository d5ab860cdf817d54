package emulator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// ErrNotFound is returned, wrapped, by Start when there is no emulator in any place that is searched. The text around
// it lists the places, what was found in each, and the commands that help.
var ErrNotFound = errors.New("emulator: no Spanner emulator found")

// found is where the search ended: exactly one field is set.
type found struct {
	running string // host:port of a server that runs already
	binary  string // path of an emulator_main
	docker  string // path of a docker client whose engine has the emulator's image
}

// machine is what the search looks at, so that each place can be tried on a made-up one.
type machine struct {
	getenv   func(string) string
	path     []string // folders of executables, in order
	sdkRoots []string // patterns of folders in which the Cloud SDK is put by the ways to install it
}

func thisMachine(o Options) machine {
	m := machine{
		getenv:   os.Getenv,
		path:     splitPath(os.Getenv("PATH")),
		sdkRoots: sdkRoots(),
	}
	if o.IgnoreEnvironment {
		m.getenv = func(string) string { return "" }
	}
	return m
}

// find looks in each place in turn and ends at the first emulator. A place that the user named, by an option or a
// variable, ends the search also when it holds none: another emulator than the one that was asked for would be a
// surprise. own is the address of the front to come: a shell in which SPANNER_EMULATOR_HOST is set for the clients of
// that front may well be the one that starts it.
func find(ctx context.Context, o Options, m machine, own string) (found, error) {
	if o.Binary != "" {
		f, err := namedBinary("Options.Binary", o.Binary)
		return f, err
	}
	if host := m.getenv("SPANNER_EMULATOR_HOST"); host != "" && !sameAddress(host, own) {
		return namedHost(host)
	}
	if path := m.getenv("SPANNER_EMULATOR_BINARY"); path != "" {
		return namedBinary("SPANNER_EMULATOR_BINARY", path)
	}

	var tried []string
	for _, place := range []struct {
		name string
		look func() (found, error)
	}{
		{"emulator_main in PATH", func() (found, error) { return inPath(m.path) }},
		{"the Cloud SDK where packages put it", func() (found, error) { return belowRoots(m.sdkRoots) }},
		{"the Cloud SDK that gcloud names", func() (found, error) { return belowGcloud(ctx, m.path) }},
		{"docker", func() (found, error) { return inDocker(ctx, m.path) }},
	} {
		f, err := place.look()
		if err == nil {
			return f, nil
		}
		tried = append(tried, fmt.Sprintf("%s: %v", place.name, err))
	}
	host, binary := "not set", "not set"
	if o.IgnoreEnvironment {
		host, binary = "not read", "not read"
	} else if m.getenv("SPANNER_EMULATOR_HOST") != "" {
		host = "the front's own address"
	}
	first := "SPANNER_EMULATOR_HOST: " + host + "\n  SPANNER_EMULATOR_BINARY: " + binary
	return found{}, fmt.Errorf("%w; tried\n  %s\n  %s\n%s", ErrNotFound, first, strings.Join(tried, "\n  "), help)
}

const help = `what helps, any one of:
  gcloud components install cloud-spanner-emulator
  sudo apt-get install google-cloud-cli-spanner-emulator    (with Google's package source)
  docker pull ` + dockerImage + `
  export SPANNER_EMULATOR_BINARY=/path/to/emulator_main
  export SPANNER_EMULATOR_HOST=host:port    (an emulator that runs already)`
