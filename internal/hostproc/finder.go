package hostproc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/prometheus/procfs"
)

// Finder finds the kubelet's process on a host.
type Finder struct {
	// Root is where the root of the host is mounted; "/" if empty.
	Root string
	// Proc is where the processes of the host are; proc below Root if empty.
	Proc string
	// PIDFile is a file of the host that has the ID of the process. If it is empty, the process is the oldest one of the name
	// Name: a kubelet's children may have its name for a moment.
	PIDFile, Name string
}

// Table is where the processes are.
func (f Finder) Table() string { return cmp.Or(f.Proc, filepath.Join(cmp.Or(f.Root, "/"), "proc")) }

// Find returns the process, or the zero Process if it does not exist. While the previously found process lives, Find does
// not search: no other process can be older. A process that has ended is returned only if no other process has the name.
func (f Finder) Find(before Process) (Process, error) {
	p, err := f.find(before)
	if errors.Is(err, ErrGone) {
		return Process{}, nil
	}
	return p, err
}

func (f Finder) find(before Process) (Process, error) {
	if f.PIDFile != "" {
		return f.ofFile()
	}
	if before.Exists() {
		p, err := Read(f.Table(), before.PID)
		if err == nil && p.SinceBoot == before.SinceBoot && p.Comm == comm(f.Name) && !p.Ended() {
			return p, nil
		}
	}
	return f.oldest()
}

// oldest returns the oldest living process of the name, or else the oldest ended one.
func (f Finder) oldest() (Process, error) {
	table, err := procfs.NewFS(f.Table())
	if err != nil {
		return Process{}, fmt.Errorf("processes: %w", err)
	}
	all, err := table.AllProcs()
	if err != nil {
		return Process{}, fmt.Errorf("processes: %w", err)
	}
	self, _ := os.Readlink(filepath.Join(f.Table(), "self")) // statusd observe is not the statusd that it looks for
	var oldest Process
	for _, candidate := range all {
		name, err := candidate.Comm()
		if err != nil || name != comm(f.Name) || strconv.Itoa(candidate.PID) == self {
			continue // another one, or it has ended since the table was read
		}
		p, err := read(candidate)
		if errors.Is(err, ErrGone) {
			continue
		}
		if err != nil {
			return Process{}, err
		}
		if !oldest.Exists() || p.precedes(oldest) {
			oldest = p
		}
	}
	return oldest, nil
}

// precedes reports whether a process is rather the kubelet's than another one of its name.
func (p Process) precedes(other Process) bool {
	if p.Ended() != other.Ended() {
		return other.Ended()
	}
	return cmp.Or(cmp.Compare(p.SinceBoot, other.SinceBoot), cmp.Compare(p.PID, other.PID)) < 0
}

// comm is what the kernel keeps of a name.
func comm(name string) string { return name[:min(len(name), 15)] }

// ofFile is the process that the file names.
func (f Finder) ofFile() (Process, error) {
	root := cmp.Or(f.Root, "/")
	path, err := Resolve(root, f.PIDFile)
	if err != nil {
		return Process{}, err
	}
	data, err := os.ReadFile(filepath.Join(root, path))
	if errors.Is(err, fs.ErrNotExist) {
		return Process{}, nil
	}
	if err != nil {
		return Process{}, fmt.Errorf("process: %w", err)
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(data)))
	if err != nil || pid <= 0 {
		return Process{}, fmt.Errorf("process: %s has no process ID", f.PIDFile)
	}
	return Read(f.Table(), pid)
}

// OfHost reports whether the processes are a host's: the second process of a host is the kernel's. A container's process
// list proves nothing about a kubelet outside it.
func OfHost(proc string) bool {
	name, err := os.ReadFile(filepath.Join(proc, "2", "comm"))
	return err == nil && string(bytes.TrimSpace(name)) == "kthreadd"
}
