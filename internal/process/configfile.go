package process

import (
	"fmt"
	"os"
	"path/filepath"
)

// NoSocket is the path that disables a socket.
const NoSocket = "none"

// SocketPath is where a socket is served: as configured, or by default in a directory. Empty: it is not.
func SocketPath(configured, directory, name string) string {
	switch configured {
	case NoSocket:
		return ""
	case "":
		return filepath.Join(directory, name)
	}
	return configured
}

// LoadFile reads a config file.
func LoadFile[C any](path string, load func(path string, data []byte) (C, error)) (C, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		var none C
		return none, fmt.Errorf("config: %w", err)
	}
	return load(path, data)
}

// ResolvePaths makes relative paths start from the directory of the file that they stand in: they must
// not depend on where statusd is started.
func ResolvePaths(file string, paths ...*string) {
	for _, path := range paths {
		if *path != "" && *path != NoSocket && !filepath.IsAbs(*path) {
			*path = filepath.Join(filepath.Dir(file), *path)
		}
	}
}
