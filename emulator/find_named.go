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

// namedHost reads SPANNER_EMULATOR_HOST as Google's clients do: host:port, perhaps behind a scheme. What answers there
// is found out later.
func namedHost(value string) (found, error) {
	addr := value
	for _, scheme := range []string{"http://", "https://", "passthrough:///"} {
		addr = strings.TrimPrefix(addr, scheme)
	}
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return found{}, fmt.Errorf("emulator: SPANNER_EMULATOR_HOST is %q, which is not host:port (%w): correct it, or unset it to have an emulator started", value, err)
	}
	return found{running: addr}, nil
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
