package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/statusd/statusd/runtime/process/shim"
)

// leftoverTime is how long a process that was killed may take to be gone.
const leftoverTime = 10 * time.Second

// EndLeftovers kills the processes of all containers of a runtime's directory, even without records
// on disk, and returns when they have ended. Processes are found by the working directory of shims
// and the environment of containers. No runtime may use the directory meanwhile.
func EndLeftovers(ctx context.Context, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("process: end processes: %w", err)
	}
	mark := filepath.Join(dir, "pods") + string(filepath.Separator)
	ctx, cancel := context.WithTimeout(ctx, leftoverTime)
	defer cancel()
	for {
		left, err := leftovers(mark)
		if err != nil || len(left) == 0 {
			return err
		}
		for _, pid := range left {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("process: end process %d: %w", pid, err)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("process: processes %v of containers do not end: %w", left, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// leftovers are the processes that have the mark in their arguments or environment.
func leftovers(mark string) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("process: list processes: %w", err)
	}
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if isShimOf(entry.Name(), mark) || isContainerOf(processFile(entry.Name(), "environ"), mark) {
			found = append(found, pid)
		}
	}
	return found, nil
}

// processFile reads a list of strings of a process from /proc; it is empty for a process that has
// ended, or of another user.
func processFile(pid, name string) []string {
	text, err := os.ReadFile(filepath.Join("/proc", pid, name))
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// isShimOf reports whether a process is a shim in the marked directory. Other programs may be there
// too, such as a shell. Shims of earlier releases have the directory as their last argument.
func isShimOf(pid, mark string) bool {
	args := processFile(pid, "cmdline")
	if len(args) < 2 || (filepath.Base(args[0]) != shim.Program && args[1] != shimArgument) {
		return false
	}
	dir, err := os.Readlink(filepath.Join("/proc", pid, "cwd"))
	return (err == nil && strings.HasPrefix(dir, mark)) || strings.HasPrefix(args[len(args)-1], mark)
}

// isContainerOf reports whether the environment belongs to a container in the marked directory, by
// the variables that statusd gives it.
func isContainerOf(environment []string, mark string) bool {
	return slices.ContainsFunc(environment, func(variable string) bool {
		name, value, _ := strings.Cut(variable, "=")
		return strings.HasPrefix(name, VariablePrefix) && strings.HasPrefix(value, mark)
	})
}
