// Package mounts finds and unmounts the mounts in a directory, so that their contents are not deleted with the
// directory.
package mounts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Below lists the mount points in a directory, the innermost first. A missing directory has none.
func Below(dir string) ([]string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var below []string
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		// Blanks and the like are written as octal numbers.
		point := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(fields[4])
		if strings.HasPrefix(point, real+"/") {
			below = append(below, point)
		}
	}
	slices.Reverse(below) // a mount is listed after its parent
	return below, nil
}

// UnmountBelow unmounts all mounts in a directory.
func UnmountBelow(dir string) error {
	points, err := Below(dir)
	if err != nil {
		return err
	}
	for _, point := range points {
		if err := unix.Unmount(point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("%s is mounted and cannot be unmounted: %w", point, err)
		}
	}
	return nil
}
