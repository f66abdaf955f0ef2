package mounts

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// CheckKernel returns an error if the kernel cannot open files beneath a directory, by which volumes are mounted and deleted.
func CheckKernel() error {
	fd, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_XDEV})
	if err != nil {
		return fmt.Errorf("openat2: %w; Linux 5.10 or newer is needed, and a seccomp profile that allows this system call", err)
	}
	return unix.Close(fd)
}
