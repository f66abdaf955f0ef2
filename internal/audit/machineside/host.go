package machineside

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// errTooMany: a directory or table has more entries than the options allow.
var errTooMany = errors.New("more entries than one look reads")

// host reads the files of the host. One value serves one reading.
type host struct {
	root string
	left int // entries that this look may still read
}

// path is where a resolved path of the host is for this process.
func (h *host) path(resolved string) string { return filepath.Join(h.root, resolved) }

// list returns the entries of a directory, by name, without following a link at its end. A directory
// that has vanished, or is no longer a directory, has no entries.
func (h *host) list(dir string) ([]fs.DirEntry, error) {
	file, err := os.OpenFile(h.path(dir), os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if vanished(err) || errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer file.Close()
	var entries []fs.DirEntry
	for {
		some, err := file.ReadDir(256)
		entries = append(entries, some...)
		if h.left -= len(some); h.left < 0 {
			return nil, fmt.Errorf("%s: %w", dir, errTooMany)
		}
		switch {
		case errors.Is(err, io.EOF), vanished(err):
			slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
			return entries, nil
		case err != nil:
			return nil, err
		}
	}
}

// read returns the content of a file that is not larger than the limit.
func (h *host) read(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	return data, nil
}
