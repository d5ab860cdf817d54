//go:build unix && !linux

package main

import "syscall"

// childAttributes gives the worker a process group of its own, so that a Ctrl-C on the terminal reaches the parent alone.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
