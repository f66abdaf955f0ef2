package confine

import "golang.org/x/sys/unix"

const (
	arch    = unix.AUDIT_ARCH_X86_64
	foreign = 0x40000000 // numbers of the x32 interface, which are other names for the same calls
)

// deniedHere are the denied system calls that only amd64 has.
var deniedHere = []uint32{
	unix.SYS_CREATE_MODULE, unix.SYS_GET_KERNEL_SYMS, unix.SYS_IOPERM, unix.SYS_IOPL, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_QUERY_MODULE, unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS_SYSFS, unix.SYS__SYSCTL,
}
