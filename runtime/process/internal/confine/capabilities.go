package confine

import (
	"strings"

	"golang.org/x/sys/unix"
)

// All has the bits of every capability, present and future.
const All = ^uint64(0)

// Capability returns the bit of a capability by its name in the API, with or without CAP_, and All
// for "ALL".
func Capability(name string) (bits uint64, known bool) {
	name = strings.TrimPrefix(strings.ToUpper(name), "CAP_")
	if name == "ALL" {
		return All, true
	}
	number, known := numbers[name]
	return 1 << number, known
}

var numbers = map[string]int{
	"AUDIT_CONTROL": unix.CAP_AUDIT_CONTROL, "AUDIT_READ": unix.CAP_AUDIT_READ, "AUDIT_WRITE": unix.CAP_AUDIT_WRITE,
	"BLOCK_SUSPEND": unix.CAP_BLOCK_SUSPEND, "BPF": unix.CAP_BPF, "CHECKPOINT_RESTORE": unix.CAP_CHECKPOINT_RESTORE,
	"CHOWN": unix.CAP_CHOWN, "DAC_OVERRIDE": unix.CAP_DAC_OVERRIDE, "DAC_READ_SEARCH": unix.CAP_DAC_READ_SEARCH,
	"FOWNER": unix.CAP_FOWNER, "FSETID": unix.CAP_FSETID, "IPC_LOCK": unix.CAP_IPC_LOCK, "IPC_OWNER": unix.CAP_IPC_OWNER,
	"KILL": unix.CAP_KILL, "LEASE": unix.CAP_LEASE, "LINUX_IMMUTABLE": unix.CAP_LINUX_IMMUTABLE,
	"MAC_ADMIN": unix.CAP_MAC_ADMIN, "MAC_OVERRIDE": unix.CAP_MAC_OVERRIDE, "MKNOD": unix.CAP_MKNOD,
	"NET_ADMIN": unix.CAP_NET_ADMIN, "NET_BIND_SERVICE": unix.CAP_NET_BIND_SERVICE, "NET_BROADCAST": unix.CAP_NET_BROADCAST,
	"NET_RAW": unix.CAP_NET_RAW, "PERFMON": unix.CAP_PERFMON, "SETFCAP": unix.CAP_SETFCAP, "SETGID": unix.CAP_SETGID,
	"SETPCAP": unix.CAP_SETPCAP, "SETUID": unix.CAP_SETUID, "SYSLOG": unix.CAP_SYSLOG, "SYS_ADMIN": unix.CAP_SYS_ADMIN,
	"SYS_BOOT": unix.CAP_SYS_BOOT, "SYS_CHROOT": unix.CAP_SYS_CHROOT, "SYS_MODULE": unix.CAP_SYS_MODULE,
	"SYS_NICE": unix.CAP_SYS_NICE, "SYS_PACCT": unix.CAP_SYS_PACCT, "SYS_PTRACE": unix.CAP_SYS_PTRACE,
	"SYS_RAWIO": unix.CAP_SYS_RAWIO, "SYS_RESOURCE": unix.CAP_SYS_RESOURCE, "SYS_TIME": unix.CAP_SYS_TIME,
	"SYS_TTY_CONFIG": unix.CAP_SYS_TTY_CONFIG, "WAKE_ALARM": unix.CAP_WAKE_ALARM,
}
