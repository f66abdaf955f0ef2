package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/statusd/statusd/guard"
)

// ErrOnlyFound is why a process that was only found is not started or stopped.
var ErrOnlyFound = errors.New("service: the guard does not know what starts this process: configure its unit or its command")

// Found is a process that is found by its pid file or its name, as a [guard.Service] that can only look.
type Found struct {
	// PIDFile has its number; Comm is its name as in /proc/PID/comm, used if PIDFile is empty.
	PIDFile, Comm string
	// Proc is where the process file system is mounted; /proc if empty.
	Proc string
}

// Name implements [guard.Service].
func (f Found) Name() string {
	if f.PIDFile != "" {
		return f.PIDFile
	}
	return f.Comm
}

// State implements [guard.Service]. That a search finds nothing does not prove that there is nothing.
func (f Found) State(context.Context) (guard.Process, error) {
	proc := f.Proc
	if proc == "" {
		proc = "/proc"
	}
	pid, err := f.find(proc)
	if err != nil || pid == 0 {
		return guard.Process{}, err
	}
	stat, err := readStat(proc, pid)
	if err != nil {
		return guard.Process{}, nil // it is gone
	}
	started, err := startTime(proc, stat.sinceBoot)
	if err != nil {
		return guard.Process{}, err
	}
	return look(guard.Process{Exists: true, PID: pid, Started: started}, proc, 0), nil
}

func (f Found) find(proc string) (int, error) {
	if f.PIDFile != "" {
		data, err := os.ReadFile(f.PIDFile)
		if errors.Is(err, os.ErrNotExist) {
			return 0, nil
		}
		if err != nil {
			return 0, fmt.Errorf("service: %w", err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
		if err != nil || pid <= 0 {
			return 0, fmt.Errorf("service: %s has no number of a process", f.PIDFile)
		}
		return pid, nil
	}
	entries, err := os.ReadDir(proc)
	if err != nil {
		return 0, fmt.Errorf("service: %w", err)
	}
	self, _ := os.Readlink(filepath.Join(proc, "self")) // statusd observe is not the statusd that it looks for
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || entry.Name() == self {
			continue
		}
		comm, err := os.ReadFile(filepath.Join(proc, entry.Name(), "comm"))
		if err == nil && strings.TrimSpace(string(comm)) == f.Comm {
			return pid, nil
		}
	}
	return 0, nil
}

// Start implements [guard.Service].
func (Found) Start(context.Context) error { return ErrOnlyFound }

// Stop implements [guard.Service].
func (Found) Stop(context.Context) error { return ErrOnlyFound }

// Restart implements [guard.Service].
func (Found) Restart(context.Context) error { return ErrOnlyFound }
