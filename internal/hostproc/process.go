package hostproc

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// ErrGone is the error of a process that does not exist.
var ErrGone = errors.New("hostproc: there is no such process")

// tick is the unit of times in /proc: USER_HZ is 100 on every architecture that Go supports.
const tick = time.Second / 100

// Process is a process as /proc shows it. The zero value stands for no process.
type Process struct {
	PID int
	// Comm is the process's name, cut to 15 bytes by the kernel.
	Comm string
	// State is the letter of its state: S, R, T, Z and others.
	State byte
	// SinceBoot is how long after the start of the machine it started, which does not change when the clock is set.
	SinceBoot time.Duration
	// CPU is how long it has run.
	CPU time.Duration
}

// Exists reports whether there is a process, including an ended one that waits for its parent.
func (p Process) Exists() bool { return p.PID != 0 }

// Stopped reports whether a signal or a debugger has stopped the process.
func (p Process) Stopped() bool { return p.State == 'T' || p.State == 't' }

// Ended reports whether the process has ended and waits for its parent.
func (p Process) Ended() bool { return p.State == 'Z' || p.State == 'X' || p.State == 'x' }

// Started is when the process started by the clock of a machine that was started at boot.
func (p Process) Started(boot time.Time) time.Time { return boot.Add(p.SinceBoot) }

// Boot returns when the machine was started, by its clock as it is now, in whole seconds.
func Boot(proc string) (time.Time, error) {
	table, err := procfs.NewFS(proc)
	if err != nil {
		return time.Time{}, fmt.Errorf("time of boot: %w", err)
	}
	stat, err := table.Stat()
	if err != nil {
		return time.Time{}, fmt.Errorf("time of boot: %w", err)
	}
	if stat.BootTime == 0 {
		return time.Time{}, fmt.Errorf("time of boot: %s/stat has no line btime", proc)
	}
	return time.Unix(int64(stat.BootTime), 0), nil
}

// Read reads a process of the table at proc. The error is [ErrGone] if the process does not exist.
func Read(proc string, pid int) (Process, error) {
	table, err := procfs.NewFS(proc)
	if err != nil {
		return Process{}, fmt.Errorf("processes: %w", err)
	}
	p, err := table.Proc(pid)
	if err != nil {
		return Process{}, failed(pid, err)
	}
	return read(p)
}

func read(p procfs.Proc) (Process, error) {
	stat, err := p.Stat()
	if err != nil {
		return Process{}, failed(p.PID, err)
	}
	return Process{
		PID: p.PID, Comm: stat.Comm, State: stat.State[0],
		SinceBoot: time.Duration(stat.Starttime) * tick, CPU: time.Duration(stat.UTime+stat.STime) * tick,
	}, nil
}

// failed is the error of a process that could not be read.
func failed(pid int, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return ErrGone
	}
	return fmt.Errorf("process %d: %w", pid, err)
}
