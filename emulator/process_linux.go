package emulator

import "syscall"

// childAttributes makes the kernel end the emulator when the thread that started it ends, besides the lifeline: two
// ways that do not depend on each other. The shell replaces itself by the emulator, which keeps the signal over exec.
// A process group of its own keeps a Ctrl-C on the terminal for the parent, which then ends the emulator in order.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
