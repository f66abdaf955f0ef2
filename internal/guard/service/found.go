package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/hostproc"
)

// ErrOnlyFound is why a process that was only found is not started or stopped.
var ErrOnlyFound = errors.New("service: the guard does not know what starts this process: configure its unit or restartCommand")

// Found is a process that is found by its pid file or its name, as a [guard.Service].
type Found struct {
	hostproc.Finder
	// Command restarts the process, and returns once the new process has started. Empty: the process is not restarted.
	Command []string
}

// Name implements [guard.Service].
func (f Found) Name() string { return cmp.Or(f.PIDFile, f.Finder.Name) }

// State implements [guard.Service]. A search without a result does not prove that the process does not
// exist.
func (f Found) State(context.Context) (guard.Process, error) {
	p, err := f.Find(hostproc.Process{})
	if err != nil || !p.Exists() {
		return guard.Process{}, err
	}
	boot, err := hostproc.Boot(f.Table())
	if err != nil {
		return guard.Process{}, err
	}
	frozen := hostproc.Frozen(f.Table(), filepath.Join(cmp.Or(f.Root, "/"), "sys/fs/cgroup"), p.PID)
	return guard.Process{Exists: true, PID: p.PID, Started: p.Started(boot), Stopped: p.Stopped(), Frozen: frozen, Zombie: p.Ended()}, nil
}

// Start implements [guard.Service].
func (Found) Start(context.Context) error { return ErrOnlyFound }

// Stop implements [guard.Service].
func (Found) Stop(context.Context) error { return ErrOnlyFound }

// Restart implements [guard.Service].
func (f Found) Restart(ctx context.Context) error {
	if len(f.Command) == 0 {
		return ErrOnlyFound
	}
	cmd := exec.CommandContext(ctx, f.Command[0], f.Command[1:]...)
	cmd.WaitDelay = time.Second // the new process may have inherited the output
	output, err := cmd.CombinedOutput()
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return fmt.Errorf("service: %s: %w %s", f.Command[0], err, strings.TrimSpace(string(output[:min(len(output), maxOutput)])))
	}
	return nil
}

// maxOutput is how much of the output of a command that failed is reported.
const maxOutput = 512
