//go:build amd64 || arm64

package confine

import (
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// CanFilter reports whether system calls can be filtered on this kind of machine.
const CanFilter = true

// denied are system calls that change the machine, reach into the kernel, or make
// namespaces: what the default profiles of container engines also keep from an ordinary
// container. They fail with EPERM.
var denied = append([]uint32{
	unix.SYS_ACCT, unix.SYS_ADD_KEY, unix.SYS_BPF, unix.SYS_CLOCK_ADJTIME, unix.SYS_CLOCK_SETTIME, unix.SYS_DELETE_MODULE,
	unix.SYS_FINIT_MODULE, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSOPEN, unix.SYS_FSPICK, unix.SYS_INIT_MODULE,
	unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_IO_URING_SETUP, unix.SYS_KEXEC_LOAD, unix.SYS_KEYCTL,
	unix.SYS_LOOKUP_DCOOKIE, unix.SYS_MOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_MOVE_MOUNT, unix.SYS_NFSSERVCTL,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_OPEN_TREE, unix.SYS_PERF_EVENT_OPEN, unix.SYS_PIVOT_ROOT, unix.SYS_QUOTACTL,
	unix.SYS_QUOTACTL_FD, unix.SYS_REBOOT, unix.SYS_REQUEST_KEY, unix.SYS_SETNS, unix.SYS_SETTIMEOFDAY, unix.SYS_SWAPOFF,
	unix.SYS_SWAPON, unix.SYS_UMOUNT2, unix.SYS_UNSHARE, unix.SYS_USERFAULTFD, unix.SYS_VHANGUP,
}, deniedHere...)

// newNamespaces are the flags of clone that make namespaces.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// The offsets of the fields that a filter reads in the kernel's seccomp_data.
const (
	offsetNumber   = 0
	offsetArch     = 4
	offsetArgument = 16 // the low half of the first one; both machines are little-endian
)

// filterSystemCalls needs no_new_privs or CAP_SYS_ADMIN.
func filterSystemCalls(needsClone3 bool) error {
	program := filter(needsClone3)
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&fprog)))
	if errno != 0 {
		return errno
	}
	return nil
}

// filter is the program that the kernel runs before each system call.
func filter(needsClone3 bool) []unix.SockFilter {
	const (
		load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		above  = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		anyOf  = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		answer = unix.BPF_RET | unix.BPF_K
		deny   = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
		absent = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	)
	clone3 := absent // the C library does without it; a filter cannot see its flags
	if needsClone3 {
		clone3 = unix.SECCOMP_RET_ALLOW
	}
	program := []unix.SockFilter{
		{Code: load, K: offsetArch},
		{Code: equal, K: arch, Jt: 1},
		{Code: answer, K: deny}, // another kind of program, whose numbers mean other calls
		{Code: load, K: offsetNumber},
		{Code: above, K: foreign, Jf: 1},
		{Code: answer, K: deny},
		{Code: equal, K: unix.SYS_CLONE3, Jf: 1},
		{Code: answer, K: clone3},
		{Code: equal, K: unix.SYS_CLONE, Jf: 4},
		{Code: load, K: offsetArgument},
		{Code: anyOf, K: newNamespaces, Jf: 1},
		{Code: answer, K: deny},
		{Code: answer, K: unix.SECCOMP_RET_ALLOW},
	}
	for _, number := range slices.Sorted(slices.Values(denied)) {
		program = append(program, unix.SockFilter{Code: equal, K: number, Jf: 1}, unix.SockFilter{Code: answer, K: deny})
	}
	return append(program, unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_ALLOW})
}
