package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/statusd/statusd/internal/mounts"
)

// DeleteState deletes the files of agents in the state directory, including the runtime's directory, and the files that match the
// patterns in more. Other files stay. No agent may use the state, and no container may run: see [EndContainers].
func DeleteState(config Config, more ...string) error {
	var problems []error
	for _, name := range append(more, stateFiles...) {
		found, err := filepath.Glob(filepath.Join(config.StateDir, name))
		problems = append(problems, err)
		for _, path := range found {
			problems = append(problems, removeAll(path))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("agent: delete state: %w", err)
	}
	if err := os.Remove(config.StateDir); err != nil && !errors.Is(err, fs.ErrNotExist) && !isNotEmpty(err) {
		return fmt.Errorf("agent: delete state: %w", err)
	}
	return nil
}

// stateFiles are patterns of what lies in the state directory, with what a kill leaves of unfinished files.
var stateFiles = []string{journalFile + "*", runtimeDirectory, joinedFile, controlSocket, cordonFile + "*", pkiDirectory}

// removeAll is os.RemoveAll, also for directories that their owner may not write, as modules of Go
// in a volume are. What is mounted inside, as a volume in memory or by a pod, is unmounted, never deleted.
func removeAll(path string) error {
	if err := mounts.RemoveAll(path); err == nil {
		return nil
	}
	_ = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.Chmod(name, 0o700)
		}
		return nil
	})
	return mounts.RemoveAll(path)
}

// isNotEmpty relies on package syscall: ENOTEMPTY matches fs.ErrExist.
func isNotEmpty(err error) bool { return errors.Is(err, fs.ErrExist) }
