//go:build !unix

package main

import (
	"errors"
	"os"
	"syscall"
)

// Nothing can be frozen here; a run of half a minute says that it has proved nothing about it.

func freeze(*os.Process) error { return errors.ErrUnsupported }

func thaw(*os.Process) error { return errors.ErrUnsupported }

func childAttributes() *syscall.SysProcAttr { return nil }
