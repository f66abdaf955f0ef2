//go:build !linux

package agent

import (
	"fmt"
	"os"
)

// writableState returns an error if the state directory is gone.
func writableState(dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("state directory %s: %w", dir, err)
	}
	return nil
}
