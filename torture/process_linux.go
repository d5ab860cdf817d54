package main

import "syscall"

// childAttributes makes the kernel kill the worker when the thread that started it ends, besides the end of its standard
// input, which a frozen worker would not notice. A process group of its own keeps a Ctrl-C on the terminal for the parent.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
