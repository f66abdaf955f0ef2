package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// End ends the containers that an agent of this config has left running, and then every process
// that was started by one and still runs, even if nothing on disk knows of it any more. No agent
// may use the state meanwhile. It returns how many containers there were.
func End(ctx context.Context, config Config, grace time.Duration) (ended int, err error) {
	if _, err := os.Stat(config.StateDir); err == nil {
		if ended, err = EndContainers(ctx, config, grace); err != nil {
			return ended, err
		}
	}
	return ended, endLeftovers(ctx, config.StateDir)
}

// Reset is [End], and then deletes all that agents keep in the state directory. What else is in
// there stays.
func Reset(ctx context.Context, config Config, grace time.Duration) (ended int, err error) {
	if ended, err = End(ctx, config, grace); err != nil {
		return ended, err
	}
	var problems []error
	for _, name := range stateFiles {
		found, err := filepath.Glob(filepath.Join(config.StateDir, name))
		problems = append(problems, err)
		for _, path := range found {
			problems = append(problems, removeAll(path))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return ended, fmt.Errorf("agent: reset: %w", err)
	}
	if err := os.Remove(config.StateDir); err != nil && !errors.Is(err, fs.ErrNotExist) && !isNotEmpty(err) {
		return ended, fmt.Errorf("agent: reset: %w", err)
	}
	return ended, nil
}

// stateFiles are patterns of what lies in the state directory.
var stateFiles = []string{journalFile + "*", runtimeDirectory, joinedFile, controlSocket, pkiDirectory}

// removeAll is os.RemoveAll, also for directories that their owner may not write, as modules of Go
// in a volume are.
func removeAll(path string) error {
	if err := os.RemoveAll(path); err == nil {
		return nil
	}
	_ = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.Chmod(name, 0o700)
		}
		return nil
	})
	return os.RemoveAll(path)
}
