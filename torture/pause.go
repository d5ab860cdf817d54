package main

import (
	"errors"
	"net"

	"github.com/spanqueue/spanqueue/emulator/front/fault"
)

// pauser makes the function that pauses the emulator: its process where that can be found, and otherwise everything that
// comes to the front. Where there is neither it is not supported.
func (db *database) pauser() func() (resume func(), err error) {
	_, port, _ := net.SplitHostPort(db.emulator.BackendAddr()) // "" finds nothing
	emulator := listener(port)
	return func() (func(), error) {
		switch {
		case emulator == nil && db.emulator.Front() == nil:
			return nil, errors.ErrUnsupported
		case emulator == nil:
			return db.emulator.Front().Faults().Add(fault.Rule{Name: "paused", Do: fault.Hold()}).Remove, nil
		}
		if err := freeze(emulator); err != nil {
			return nil, err
		}
		return func() { _ = thaw(emulator) }, nil
	}
}
