package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// monotonic is the time on the clock by which systemd orders reloads.
func monotonic() (time.Duration, error) {
	var now unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return time.Duration(now.Nano()), err
}
