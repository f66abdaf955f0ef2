package volume

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"
)

// Names that the writer keeps for itself; they all start with "..", which no file may.
const (
	dataLink    = "..data"
	newDataLink = "..data_tmp"
	timeLayout  = "..2006_01_02_15_04_05"
)

// write brings a volume's directory to exactly these files, atomically: a reader that goes
// through the links of the volume sees the old files or the new ones. write reports whether
// anything had to change. After an error, and after a crash at any point, the directory is in
// the old state or in the new one, and the next write cleans up.
//
// It never leaves the directory, even if a container that may write there puts links in its
// way.
func write(dir string, files Files, owner owner) (changed bool, err error) {
	if err := files.check(); err != nil {
		return false, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return false, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false, err
	}
	defer root.Close()
	current, err := root.Readlink(dataLink)
	if err == nil && isSame(root, current, files) {
		return false, errors.Join(setOwner(root, owner), link(root, files), tidy(root, current, files))
	}
	fresh, err := writeVersion(root, files, owner)
	if err != nil {
		return false, err
	}
	if err := swap(root, fresh); err != nil {
		return false, errors.Join(err, root.RemoveAll(fresh))
	}
	return true, errors.Join(setOwner(root, owner), link(root, files), tidy(root, fresh, files))
}

// isSame reports whether a version holds these files and no others. The sizes come first,
// so that a file which a container has made huge is not read.
func isSame(root *os.Root, version string, files Files) bool {
	if strings.Contains(version, "/") || !strings.HasPrefix(version, "..") {
		return false // not one of ours
	}
	found := 0
	err := fs.WalkDir(root.FS(), version, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		file, wanted := files[strings.TrimPrefix(name, version+"/")]
		if !wanted || !holds(root, name, file) {
			return fs.ErrExist
		}
		found++
		return nil
	})
	return err == nil && found == len(files)
}

func holds(root *os.Root, name string, want File) bool {
	info, err := root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(want.Data)) {
		return false
	}
	// Whether the group may read depends on the owner, which does not change in a pod's life.
	if info.Mode().Perm()&^0o040 != want.Mode&^0o040 {
		return false
	}
	file, err := root.Open(name)
	if err != nil {
		return false
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, info.Size()+1))
	return err == nil && bytes.Equal(data, want.Data)
}

// writeVersion writes the files into a directory of their own, where no reader looks yet.
func writeVersion(root *os.Root, files Files, owner owner) (version string, err error) {
	version, err = makeVersion(root)
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, root.RemoveAll(version))
		}
	}()
	if err := root.Chmod(version, 0o755); err != nil { // the umask may have taken bits away
		return "", err
	}
	for _, name := range files.paths() {
		if err := makeParents(root, version, name); err != nil {
			return "", err
		}
		if err := writeFile(root, path.Join(version, name), files[name], owner); err != nil {
			return "", err
		}
	}
	return version, nil
}

func makeVersion(root *os.Root) (string, error) {
	now := time.Now()
	for i := range 1000 {
		name := fmt.Sprintf("%s.%d", now.Format(timeLayout), now.UnixNano()%1e9+int64(i))
		err := root.Mkdir(name, 0o755)
		if !errors.Is(err, fs.ErrExist) {
			return name, err
		}
	}
	return "", fmt.Errorf("no free name for a new version")
}

// makeParents makes the directories above a file, with a mode that the umask does not change.
func makeParents(root *os.Root, version, name string) error {
	at := version
	parents, _ := path.Split(name)
	for _, element := range strings.Split(strings.Trim(parents, "/"), "/") {
		if element == "" {
			continue
		}
		at = path.Join(at, element)
		err := root.Mkdir(at, 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := root.Chmod(at, 0o755); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(root *os.Root, name string, file File, owner owner) (err error) {
	out, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := out.Write(file.Data); err != nil {
		return err
	}
	mode, uid, gid := file.Mode, -1, -1
	if owner.isGroup {
		gid, mode = owner.gid, mode|0o040
	}
	if mode&0o007 == 0 {
		uid = owner.fileUID
	}
	if uid != -1 || gid != -1 {
		if err := out.Chown(uid, gid); err != nil {
			return err
		}
	}
	if err := out.Chmod(mode); err != nil { // after chown, which may take bits away
		return err
	}
	return out.Sync() // an old version is removed for this one
}

// swap makes a version the current one.
func swap(root *os.Root, version string) error {
	if err := root.RemoveAll(newDataLink); err != nil {
		return err
	}
	if err := root.Symlink(version, newDataLink); err != nil {
		return err
	}
	if info, err := root.Lstat(dataLink); err == nil && info.Mode().Type() != fs.ModeSymlink {
		if err := root.RemoveAll(dataLink); err != nil { // a container has put something there
			return err
		}
	}
	return root.Rename(newDataLink, dataLink)
}

// setOwner opens the directory to its readers after its files are written.
func setOwner(root *os.Root, owner owner) error {
	if owner.uid != -1 || owner.gid != -1 {
		if err := root.Chown(".", owner.uid, owner.gid); err != nil {
			return err
		}
	}
	return root.Chmod(".", owner.dirMode)
}

// tops are the names that the volume shows: files, and directories above files.
func tops(files Files) map[string]bool {
	names := map[string]bool{}
	for name := range files {
		top, _, _ := strings.Cut(name, "/")
		names[top] = true
	}
	return names
}

// link makes the names of the volume point through the current version.
func link(root *os.Root, files Files) error {
	for name := range tops(files) {
		want := path.Join(dataLink, name)
		if target, err := root.Readlink(name); err == nil && target == want {
			continue
		}
		if err := root.RemoveAll(name); err != nil {
			return err
		}
		if err := root.Symlink(want, name); err != nil {
			return err
		}
	}
	return nil
}

// tidy removes links to files that are no more, and all versions but the current one.
func tidy(root *os.Root, current string, files Files) error {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	shown := tops(files)
	var problems []error
	for _, entry := range entries {
		name := entry.Name()
		if name == current || name == dataLink || shown[name] {
			continue
		}
		problems = append(problems, root.RemoveAll(name))
	}
	return errors.Join(problems...)
}
