package boottime

import (
	"syscall"
	"time"
	"unsafe"
)

// Clocks of Linux, as its headers number them.
const (
	clockMonotonic = 1 // stands still while the machine is suspended
	clockBoottime  = 7 // goes on
)

// suspended returns for how long the machine has been suspended since it was booted. The clock that is ahead is read first,
// so that a pause between the two makes the answer too low and never too high. A kernel that does not know the clocks says 0.
func suspended() time.Duration {
	boot, ok := read(clockBoottime)
	if !ok {
		return 0
	}
	awake, ok := read(clockMonotonic)
	if !ok {
		return 0
	}
	return boot - awake
}

func read(clock uintptr) (time.Duration, bool) {
	var t syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&t)), 0)
	return time.Duration(t.Nano()), errno == 0
}
