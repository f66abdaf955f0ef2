// Package confine takes from a thread what the process that it starts next shall not have:
// the means to gain privileges, capabilities, system calls. All of it is inherited by
// children and cannot be undone, so it is applied to a thread that ends afterwards.
package confine

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/runtime/process/internal/record"
)

// Thread confines the calling thread. The goroutine must be locked to its thread and must
// end without unlocking it. If needsClone3, the thread starts processes by clone3, which then
// stays allowed.
func Thread(c *record.Confinement, needsClone3 bool) error {
	if c == nil {
		return nil
	}
	if c.NoNewPrivileges {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("set no_new_privs: %w", err)
		}
	}
	if c.Capabilities != nil {
		if err := limitCapabilities(*c.Capabilities); err != nil {
			return fmt.Errorf("drop capabilities: %w", err)
		}
	}
	if c.Seccomp {
		if err := filterSystemCalls(needsClone3); err != nil {
			return fmt.Errorf("filter system calls: %w", err)
		}
	}
	return nil
}

// limitCapabilities makes sure that no program which the thread executes gets another
// capability than these. A thread that may change its bounding set keeps its own until then,
// since it needs them to become another user; one that may not gives them up at once.
func limitCapabilities(keep uint64) error {
	have, err := get()
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	have.inheritable &= keep
	if have.effective&(1<<unix.CAP_SETPCAP) == 0 {
		have.permitted &= keep
		have.effective &= keep
		return set(have)
	}
	for c := range 64 {
		present, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(c), 0, 0, 0)
		if err != nil {
			break // the kernel has no more
		}
		if present == 0 || keep&(1<<c) != 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil {
			return err
		}
	}
	return set(have)
}

// sets are the capabilities of a thread.
type sets struct{ effective, permitted, inheritable uint64 }

func get() (sets, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return sets{}, err
	}
	join := func(low, high uint32) uint64 { return uint64(low) | uint64(high)<<32 }
	return sets{
		effective:   join(data[0].Effective, data[1].Effective),
		permitted:   join(data[0].Permitted, data[1].Permitted),
		inheritable: join(data[0].Inheritable, data[1].Inheritable),
	}, nil
}

func set(s sets) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{
		{Effective: uint32(s.effective), Permitted: uint32(s.permitted), Inheritable: uint32(s.inheritable)},
		{Effective: uint32(s.effective >> 32), Permitted: uint32(s.permitted >> 32), Inheritable: uint32(s.inheritable >> 32)},
	}
	return unix.Capset(&header, &data[0])
}

// Permitted returns the capabilities that this process can pass on.
func Permitted() uint64 {
	s, err := get()
	if err != nil {
		return 0
	}
	return s.permitted
}
