//go:build !linux

package mounts

import "os"

// RemoveAll deletes a directory with all that is in it: only on Linux does statusd mount anything in a directory of its own.
func RemoveAll(dir string) error { return os.RemoveAll(dir) }
