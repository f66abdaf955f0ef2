//go:build unix

package runtimetest

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// makePipe makes a named pipe and opens it for both directions, so that no process ever
// waits for the other side to open it.
func makePipe(t *testing.T, dir, name string) *os.File {
	path := filepath.Join(dir, name)
	if err := syscall.Mkfifo(path, 0o666); err != nil {
		t.Fatalf("make pipe: %v", err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatalf("open pipe: %v", err)
	}
	if err := file.SetReadDeadline(deadline(t)); err != nil {
		t.Fatalf("open pipe: %v", err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}
