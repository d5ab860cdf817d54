//go:build unix && !linux

package emulator

import "syscall"

// childAttributes gives the emulator a process group of its own, so that a Ctrl-C on the terminal reaches the parent
// alone, which then ends the emulator in order.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
