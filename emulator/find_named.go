package emulator

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
)

// namedHost reads SPANNER_EMULATOR_HOST. What answers there is found out later.
func namedHost(value string) (found, error) {
	host, port, err := splitHost(value)
	if err != nil {
		return found{}, fmt.Errorf("emulator: SPANNER_EMULATOR_HOST is %q, which is not host:port (%w): correct it, or unset it to have an emulator started", value, err)
	}
	return found{running: net.JoinHostPort(host, port)}, nil
}

// splitHost reads an address as Google's clients read SPANNER_EMULATOR_HOST: host:port, perhaps behind a scheme.
func splitHost(value string) (host, port string, err error) {
	for _, scheme := range []string{"http://", "https://", "passthrough:///"} {
		value = strings.TrimPrefix(value, scheme)
	}
	if host, port, err = net.SplitHostPort(value); err != nil {
		return "", "", err
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return host, port, err
}

// sameAddress says whether a client that is told a reaches what listens at b.
func sameAddress(a, b string) bool {
	hostA, portA, errA := splitHost(a)
	hostB, portB, errB := splitHost(b)
	return errA == nil && errB == nil && portA == portB && (hostA == hostB || isLoopback(hostA) && isLoopback(hostB))
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}

// namedBinary takes the path that the setting called name holds.
func namedBinary(name, path string) (found, error) {
	if err := executable(path); err != nil {
		return found{}, fmt.Errorf("emulator: %s is %q: %w; give the path of an emulator_main", name, path, err)
	}
	return found{binary: path}, nil
}

// executable says why path cannot be run, or nil.
func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fs.ErrNotExist
	case err != nil:
		return err
	case info.IsDir():
		return errors.New("it is a folder")
	case info.Mode()&0o111 == 0:
		return errors.New("it is not executable")
	}
	return nil
}
