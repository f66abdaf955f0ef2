package hostproc

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// maxLinks is how many symbolic links a path may have.
const maxLinks = 40

// Resolve returns a path of the host, whose root is mounted at root, with all symbolic links resolved as the host's kernel
// would resolve them: an absolute link begins at the host's root, and ".." does not leave it. Parts that do not exist are kept.
func Resolve(root, path string) (string, error) {
	resolved, rest, links := "/", path, 0
	for rest != "" {
		var part string
		part, rest, _ = strings.Cut(strings.TrimLeft(rest, "/"), "/")
		switch part {
		case "", ".":
			continue
		case "..":
			resolved = filepath.Dir(resolved)
			continue
		}
		next := filepath.Join(resolved, part)
		target, err := os.Readlink(filepath.Join(root, next))
		if err != nil { // no link, or nothing
			resolved = next
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("%s: too many symbolic links", path)
		}
		if filepath.IsAbs(target) {
			resolved = "/"
		}
		rest = target + "/" + rest
	}
	return resolved, nil
}

// Open opens a file of the host, whose root is mounted at root; / if root is empty.
func Open(root, path string) (*os.File, error) {
	root = cmp.Or(root, "/")
	resolved, err := Resolve(root, path)
	if err != nil {
		return nil, err
	}
	return os.Open(filepath.Join(root, resolved))
}
