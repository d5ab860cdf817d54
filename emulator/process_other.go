//go:build !unix

package emulator

import "syscall"

func childAttributes() *syscall.SysProcAttr { return nil }
