package main

import (
	"fmt"
	"os"
	"syscall"
)

// redirectStderr sends everything that anything in this process writes to standard error, panics of
// the runtime included, to the end of the file.
func redirectStderr(path string) error {
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	defer log.Close()
	if err := syscall.Dup3(int(log.Fd()), syscall.Stderr, 0); err != nil {
		return fmt.Errorf("log %s: %w", path, err)
	}
	return nil
}

// keepStderr is a copy of standard error that still reaches the parent process after
// redirectStderr.
func keepStderr() *os.File {
	fd, err := syscall.Dup(syscall.Stderr)
	if err != nil {
		return os.Stderr
	}
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "stderr")
}
