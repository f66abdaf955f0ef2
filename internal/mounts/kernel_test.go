package mounts

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestCheckKernel(t *testing.T) {
	if err := CheckKernel(); err != nil {
		t.Errorf("here: %v", err)
	}
	checked := make(chan error)
	go func() {
		runtime.LockOSThread() // it ends with the goroutine, and the filter with it
		if err := refuse(unix.SYS_OPENAT2); err != nil {
			t.Error(err)
		}
		checked <- CheckKernel()
	}()
	if err := <-checked; !errors.Is(err, unix.ENOSYS) || !strings.Contains(err.Error(), "Linux 5.10 or newer") {
		t.Errorf("on a kernel without openat2: %v", err)
	}
}

// refuse makes this thread one of a kernel that lacks a system call.
func refuse(call uint32) error {
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&filter)), 0, 0)
}
