package machineside

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/statusd/statusd/observe"
)

// ticks are the parts of a second in which the kernel reports times to user space, on every architecture
// that Go supports.
const ticks = 100

// maxSmall bounds the files of processes.
const maxSmall = 1 << 20

// boot returns when the machine was started, by its clock as it is now.
func boot(h *host, o Options) (time.Time, error) {
	data, err := h.read(filepath.Join(o.HostProc, "stat"), maxSmall)
	if err != nil {
		return time.Time{}, fmt.Errorf("time of boot: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "btime "); ok {
			seconds, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
			if err != nil {
				return time.Time{}, fmt.Errorf("time of boot: %w", err)
			}
			return time.Unix(seconds, 0), nil
		}
	}
	return time.Time{}, fmt.Errorf("time of boot: %s/stat has none", o.HostProc)
}

// process finds the kubelet's process, nil if there is none. It reports whether the processes of the host were seen:
// those of a container say nothing. While the process that was seen last lives, no other is older, and none is
// looked for.
func process(h *host, o Options, boot time.Time, before *observe.Process) (*observe.Process, bool, error) {
	if o.PIDFile != "" {
		return processOfFile(h, o, boot)
	}
	if before != nil && named(o, before.PID) {
		if p, err := stat(o, before.PID, boot); err == nil && p != nil && p.Started.Sub(before.Started).Abs() < jitter {
			return p, true, nil
		}
	}
	proc, err := os.ReadDir(o.HostProc)
	if err != nil {
		return nil, false, fmt.Errorf("processes: %w", err)
	}
	self, _ := os.Readlink(filepath.Join(o.HostProc, "self")) // statusd observe is not the statusd that it looks for
	var oldest *observe.Process
	for _, entry := range proc {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || entry.Name() == self {
			continue
		}
		if !named(o, pid) {
			continue // it has ended, or is another
		}
		p, err := stat(o, pid, boot)
		if err != nil {
			return nil, false, err
		}
		if p != nil && (oldest == nil || p.Started.Before(oldest.Started)) {
			oldest = p
		}
	}
	return oldest, oldest != nil || o.HostRoot == "/" || hostProcesses(o), nil
}

// hostProcesses reports whether the processes are those of the host: its second one is the kernel's.
func hostProcesses(o Options) bool {
	comm, err := os.ReadFile(filepath.Join(o.HostProc, "2", "comm"))
	return err == nil && string(bytes.TrimSpace(comm)) == "kthreadd"
}

// named reports whether a process lives and has the kubelet's name.
func named(o Options, pid int) bool {
	comm, err := os.ReadFile(filepath.Join(o.HostProc, strconv.Itoa(pid), "comm"))
	return err == nil && string(bytes.TrimSpace(comm)) == comm15(o.Process)
}

// comm15 is what the kernel keeps of a process's name.
func comm15(name string) string {
	if len(name) > 15 {
		return name[:15]
	}
	return name
}

// processOfFile finds the process that a file names.
func processOfFile(h *host, o Options, boot time.Time) (*observe.Process, bool, error) {
	path, err := h.resolve(o.PIDFile)
	if err != nil {
		return nil, false, err
	}
	data, err := h.read(h.path(path), maxSmall)
	if vanished(err) {
		return nil, true, nil
	} else if err != nil {
		return nil, false, fmt.Errorf("process: %w", err)
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(data)))
	if err != nil {
		return nil, false, fmt.Errorf("process: %s has no process ID", o.PIDFile)
	}
	p, err := stat(o, pid, boot)
	return p, err == nil, err
}

// stat reads a process; nil if it has ended.
func stat(o Options, pid int, boot time.Time) (*observe.Process, error) {
	data, err := os.ReadFile(filepath.Join(o.HostProc, strconv.Itoa(pid), "stat"))
	if vanished(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("process: %w", err)
	}
	state, started, err := parseStat(string(data))
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	switch state {
	case "Z", "X", "x": // it has ended, and its parent has not noticed
		return nil, nil
	}
	return &observe.Process{PID: pid, Started: boot.Add(started), Stopped: state == "T" || state == "t"}, nil
}

// parseStat returns the state of a process and how long after boot it was started. The name before
// them may have spaces and parentheses.
func parseStat(line string) (state string, started time.Duration, err error) {
	end := strings.LastIndexByte(line, ')')
	if end < 0 {
		return "", 0, errors.New("stat cannot be read")
	}
	fields := strings.Fields(line[end+1:])
	const stateField, startField = 0, 19 // the third and the 22nd of the line
	if len(fields) <= startField {
		return "", 0, errors.New("stat is too short")
	}
	n, err := strconv.ParseInt(fields[startField], 10, 64)
	if err != nil {
		return "", 0, err
	}
	return fields[stateField], time.Duration(n) * (time.Second / ticks), nil
}
