package journal

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
)

var errPowerLost = errors.New("the power is gone")

// simDisk is a disk in memory that knows what of it would survive a power loss: of a file
// what was synced, and any of the sectors written since; of the directory the names that
// it had when it was synced, and the first few of the changes since.
type simDisk struct {
	names   map[string]*inode
	durable map[string]*inode
	pending []func(map[string]*inode) // changes of names since the directory was synced

	steps int // calls that change something until fails is returned; negative: never
	fails error
	// once is set if only that call fails; otherwise all after it fail too.
	once  bool
	trace []string
}

// inode is a file. A sync that fails drops what was to be written, as Linux does: the file
// reads as if it were there, and the next sync has nothing to do.
type inode struct {
	data, synced []byte
	writes       []sectorWrite // since the last sync
}

type sectorWrite struct {
	at   int
	data []byte
}

func newSimDisk(files map[string][]byte) *simDisk {
	d := &simDisk{names: map[string]*inode{}, durable: map[string]*inode{}, steps: -1}
	for path, content := range files {
		d.names[path] = &inode{data: bytes.Clone(content), synced: bytes.Clone(content)}
		d.durable[path] = d.names[path]
	}
	return d
}

func (d *simDisk) step(what, path string) error {
	if d.steps == 0 {
		if d.once {
			d.steps = -1
		}
		d.trace = append(d.trace, "FAILED "+what+" "+filepath.Base(path))
		return &os.PathError{Op: what, Path: path, Err: d.fails}
	}
	d.steps--
	d.trace = append(d.trace, what+" "+filepath.Base(path))
	return nil
}

func (d *simDisk) change(f func(names map[string]*inode)) {
	f(d.names)
	d.pending = append(d.pending, f)
}

func (d *simDisk) readFile(path string) ([]byte, error) {
	if node := d.names[path]; node != nil {
		return bytes.Clone(node.data), nil
	}
	return nil, &os.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
}

func (d *simDisk) create(path string) (file, error) {
	if err := d.step("create", path); err != nil {
		return nil, err
	}
	node := &inode{} // a file that is there is emptied, which is as good as a new one
	d.change(func(names map[string]*inode) { names[path] = node })
	return &simFile{disk: d, path: path, inode: node}, nil
}

func (d *simDisk) link(path, name string) error {
	if err := d.step("link", name); err != nil {
		return err
	}
	node := d.names[path]
	if node == nil || d.names[name] != nil {
		return &os.LinkError{Op: "link", Old: path, New: name, Err: fs.ErrExist}
	}
	d.change(func(names map[string]*inode) { names[name] = node })
	return nil
}

func (d *simDisk) rename(from, to string) error {
	if err := d.step("rename", to); err != nil {
		return err
	}
	node := d.names[from]
	d.change(func(names map[string]*inode) {
		delete(names, from)
		names[to] = node
	})
	return nil
}

func (d *simDisk) remove(path string) error {
	if err := d.step("remove", path); err != nil {
		return err
	}
	d.change(func(names map[string]*inode) { delete(names, path) })
	return nil
}

func (d *simDisk) syncDir(dir string) error {
	if err := d.step("sync directory", dir); err != nil {
		return err
	}
	d.durable, d.pending = maps.Clone(d.names), nil
	return nil
}

type simFile struct {
	disk *simDisk
	path string
	*inode
	end int // of what Write wrote
}

func (f *simFile) Write(p []byte) (int, error) {
	n, err := f.WriteAt(p, int64(f.end))
	f.end += n
	return n, err
}

func (f *simFile) WriteAt(p []byte, at int64) (int, error) {
	if err := f.disk.step("write", f.path); err != nil {
		// A write that fails may have begun. It ends at a page, hence at a sector.
		half := max(0, (int(at)+len(p)/2)/sectorSize*sectorSize-int(at))
		f.put(p[:half], int(at))
		return half, err
	}
	f.put(p, int(at))
	return len(p), nil
}

func (f *simFile) put(p []byte, at int) {
	f.data = overwrite(f.data, sectorWrite{at, p})
	for len(p) > 0 {
		n := min(len(p), sectorSize-at%sectorSize)
		f.writes = append(f.writes, sectorWrite{at, bytes.Clone(p[:n])})
		p, at = p[n:], at+n
	}
}

func (f *simFile) Sync() error {
	if err := f.disk.step("sync", f.path); err != nil {
		f.writes = nil
		return err
	}
	f.synced, f.writes = bytes.Clone(f.data), nil
	return nil
}

func (f *simFile) Close() error { return nil }

func overwrite(data []byte, w sectorWrite) []byte {
	if missing := w.at + len(w.data) - len(data); missing > 0 {
		data = append(data, make([]byte, missing)...)
	}
	copy(data[w.at:], w.data)
	return data
}

// survivors is the disk after a power loss. Of the changes of names that were not synced
// the first few were made; of the sectors that were not synced those that keep chooses.
func (d *simDisk) survivors(names int, keep func() bool) *simDisk {
	table := maps.Clone(d.durable)
	for _, change := range d.pending[:names] {
		change(table)
	}
	files, done := map[string][]byte{}, map[*inode][]byte{}
	for path, node := range table {
		if _, ok := done[node]; !ok {
			content := bytes.Clone(node.synced)
			for _, w := range node.writes {
				if keep() {
					content = overwrite(content, w)
				}
			}
			done[node] = content
		}
		files[path] = done[node]
	}
	return newSimDisk(files)
}

// keeps are the ways in which the sectors that were not synced reach the disk: none, all,
// the first few, any.
func (d *simDisk) keeps(random *rand.Rand) []func() bool {
	none := []func() bool{func() bool { return false }}
	if !d.dirty() {
		return none
	}
	first := random.IntN(6)
	return append(none,
		func() bool { return true },
		func() bool { first--; return first >= 0 },
		func() bool { return random.IntN(2) == 0 },
		func() bool { return random.IntN(5) != 0 })
}

func (d *simDisk) dirty() bool {
	for _, node := range d.names {
		if len(node.writes) > 0 {
			return true
		}
	}
	return false
}
