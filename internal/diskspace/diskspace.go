// Package diskspace reads how much of a file system is used.
package diskspace

import "fmt"

// Space is the space of a file system, in bytes. Free includes the blocks reserved for root, Available
// does not.
type Space struct {
	Total, Free, Available uint64
	Inodes, InodesFree     uint64
	ReadOnly               bool
}

// Of returns the space of the file system of a path. The error is [errors.ErrUnsupported] on platforms other than
// Linux and macOS.
func Of(path string) (Space, error) {
	space, err := statfs(path)
	if err != nil {
		return Space{}, fmt.Errorf("file system of %s: %w", path, err)
	}
	return space, nil
}
