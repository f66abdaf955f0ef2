// Package proc finds, identifies and kills processes of this machine by /proc. A process is its
// number together with its start time and the boot of the machine, so that a reused number is never
// taken for the earlier process.
package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrGone is returned for a process that has ended, also if its number now belongs to
// another one.
var ErrGone = errors.New("process is gone")

// ID is one process, forever.
type ID struct {
	PID int `json:"pid"`
	// Start is the start time in clock ticks since boot.
	Start uint64 `json:"start"`
	Boot  string `json:"boot"`
}

// Complete reports whether the identity can belong to a process.
func (id *ID) Complete() bool { return id.PID > 0 && id.Boot != "" }

// Identify returns the identity of a process that exists now.
func Identify(pid int) (ID, error) {
	boot, err := BootID()
	if err != nil {
		return ID{}, err
	}
	s, err := readStat(pid)
	if err != nil {
		return ID{}, err
	}
	return ID{PID: pid, Start: s.start, Boot: boot}, nil
}

// BootID is different after each start of the machine.
func BootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data)), err
}

// Open returns a file descriptor that refers to this very process, or ErrGone. A
// process that has ended and was not reaped is not gone yet.
func (id ID) Open() (int, error) {
	boot, err := BootID()
	if err != nil {
		return -1, err
	}
	if boot != id.Boot {
		return -1, ErrGone
	}
	return openStarted(id.PID, id.Start)
}

// HasEnded reports whether this process is known to have ended, with all of its threads.
func (id ID) HasEnded() bool {
	if !id.Complete() {
		return false
	}
	fd, err := id.Open()
	if err != nil {
		return errors.Is(err, ErrGone)
	}
	defer unix.Close(fd)
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return err == nil && n > 0
}

// Signal signals exactly this process. A process that has ended needs no signal.
func (id ID) Signal(signal unix.Signal) error {
	fd, err := id.Open()
	if errors.Is(err, ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, signal, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal process %d: %w", id.PID, err)
	}
	return nil
}

// openStarted checks the start time after the descriptor is open: from then on the
// number cannot come to mean another process for us.
func openStarted(pid int, start uint64) (int, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if IsNoProcess(err) {
		return -1, ErrGone
	}
	if err != nil {
		return -1, fmt.Errorf("pidfd of %d: %w", pid, err)
	}
	s, err := readStat(pid)
	if err == nil && s.start != start {
		err = ErrGone
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// IsNoProcess reports whether pidfd_open has failed because no process has the number. The number of an ended process may be in use by a
// thread, for which older kernels return EINVAL and newer ones, from Linux 6.16, ENOENT.
func IsNoProcess(err error) bool {
	return errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT)
}

// stat is what one line of /proc says of a process.
type stat struct {
	pid, parent, session int
	state                byte
	ending               bool // or it has ended
	start                uint64
	// starting: it is in the middle of execve: it has memory, and no environment yet, not even an empty one. Zeros are shown
	// of a process whose environment may not be read.
	starting bool
	// own and reaped are the usage of the process itself and of the children that it has waited for.
	own, reaped spent
}

// spent is what never becomes less.
type spent struct{ ticks, faults, majorFaults uint64 }

func (s stat) ended() bool { return s.state == 'Z' || s.state == 'X' }

func readStat(pid int) (stat, error) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return stat{}, ErrGone
	}
	if err != nil {
		return stat{}, err
	}
	return parseStat(pid, data)
}

// parseStat skips the command, which is in parentheses and may contain anything. (Package procfs parses the same line; it
// would be a large part of a shim.)
func parseStat(pid int, data []byte) (stat, error) {
	i := bytes.LastIndexByte(data, ')')
	fields := strings.Fields(string(data[i+1:]))
	if i < 0 || len(fields) < 20 {
		return stat{}, fmt.Errorf("/proc/%d/stat reads %q", pid, data)
	}
	parent, err1 := strconv.Atoi(fields[1])
	session, err2 := strconv.Atoi(fields[3])
	start, err3 := strconv.ParseUint(fields[19], 10, 64)
	if err := errors.Join(err1, err2, err3); err != nil {
		return stat{}, fmt.Errorf("/proc/%d/stat reads %q: %w", pid, data, err)
	}
	return stat{
		pid: pid, parent: parent, session: session, state: fields[0][0], start: start,
		ending:   number(fields[6])&exiting != 0,
		starting: len(fields) > fieldEnvironmentEnd && fields[fieldMemory] != "0" && fields[fieldEnvironmentEnd] == "0",
		own:      spent{ticks: number(fields[11]) + number(fields[12]), faults: number(fields[7]), majorFaults: number(fields[9])},
		reaped:   spent{ticks: number(fields[13]) + number(fields[14]), faults: number(fields[8]), majorFaults: number(fields[10])},
	}, nil
}

// number returns 0 for a field that is not a number, such as a time that the kernel shows as
// negative.
func number(field string) uint64 {
	n, err := strconv.ParseUint(field, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// snapshot lists all processes. Processes that end meanwhile are left out.
func snapshot() ([]stat, error) {
	all, _, _, err := update(nil)
	return all, err
}

// update lists all processes, and returns the ones that are not in the earlier list as fresh. The facts of the others are from the
// earlier list. gone reports that a new process has ended already and is left out.
func update(earlier []stat) (all, fresh []stat, gone bool, err error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, nil, false, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, nil, false, err
	}
	known := make(map[int]stat, len(earlier))
	for _, s := range earlier {
		known[s.pid] = s
	}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		s, isKnown := known[pid]
		if !isKnown {
			if s, err = readStat(pid); err != nil {
				gone = true
				continue
			}
			fresh = append(fresh, s)
		}
		all = append(all, s)
	}
	return all, fresh, gone, nil
}

// hasVariable reports whether a process was started with NAME=value in its environment. An ending process does not show it any more.
func hasVariable(pid int, variable string) (has, ending bool) {
	env := environment(pid)
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if string(entry) == variable {
			return true, false
		}
	}
	if len(env) > 0 {
		return false, false
	}
	s, err := readStat(pid)
	return false, err != nil || s.ending
}

// environment is the initial environment of a process; empty if the process has ended or may not be read.
func environment(pid int) []byte {
	file := filepath.Join("/proc", strconv.Itoa(pid), "environ")
	env, err := os.ReadFile(file)
	if err != nil || len(env) > 0 {
		return env
	}
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); time.Sleep(100 * time.Microsecond) {
		if s, err := readStat(pid); err != nil || !s.starting {
			break
		}
	}
	env, _ = os.ReadFile(file) // if it had none because it was starting, it has one now
	return env
}

// startTimeout is far longer than a process is without an environment.
const startTimeout = time.Second

// exiting is among the flags of a process from the beginning of its end on.
const exiting = 0x4

// The places of fields of /proc/PID/stat after the name, see proc_pid_stat(5).
const (
	fieldMemory         = 23 - 3
	fieldEnvironmentEnd = 51 - 3
)

// Ended reports whether a process is gone or a zombie.
func Ended(pid int) bool {
	s, err := readStat(pid)
	return err != nil || s.ended()
}

// hasArguments reports whether exactly these are the arguments of a process, its name included.
func hasArguments(pid int, arguments []string) bool {
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	return err == nil && string(line) == strings.Join(arguments, "\x00")+"\x00"
}
