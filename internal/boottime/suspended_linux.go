package boottime

import (
	"time"

	"golang.org/x/sys/unix"
)

// suspended returns for how long the machine has been suspended since it was booted. The clock that is ahead is read first,
// so that a pause between the two makes the answer too low and never too high. A kernel that does not know the clocks says 0.
func suspended() time.Duration {
	boot, ok := read(unix.CLOCK_BOOTTIME) // goes on while the machine is suspended
	if !ok {
		return 0
	}
	awake, ok := read(unix.CLOCK_MONOTONIC) // stands still then
	if !ok {
		return 0
	}
	return boot - awake
}

func read(clock int32) (time.Duration, bool) {
	var t unix.Timespec
	err := unix.ClockGettime(clock, &t)
	return time.Duration(t.Nano()), err == nil
}
