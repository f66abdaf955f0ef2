package confine

import "golang.org/x/sys/unix"

const (
	arch    = unix.AUDIT_ARCH_AARCH64
	foreign = 0xffffffff // there is no other interface
)

// deniedHere are the denied system calls that not all architectures have.
var deniedHere = []uint32{unix.SYS_KEXEC_FILE_LOAD}
