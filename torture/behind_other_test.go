//go:build !linux

package main

// wholeMain is for the tests that look for processes, which they can on Linux.
func wholeMain() { panic("no such role here") }
