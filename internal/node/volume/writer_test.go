package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// everyone is the owner of files that no one in particular owns.
var everyone = owner{uid: -1, gid: -1, dirMode: 0o755, fileUID: -1}

func mustWrite(t testing.TB, dir string, files Files, owner owner) bool {
	t.Helper()
	changed, err := write(dir, files, owner)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// reporter is a test of either kind.
type reporter interface {
	Helper()
	Errorf(string, ...any)
	Fatal(...any)
}

// shown are the files of a volume as a program sees them that does not know the layout.
func shown(t reporter, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	var walk func(at string)
	walk = func(at string) {
		entries, err := os.ReadDir(filepath.Join(dir, at))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			name := filepath.Join(at, entry.Name())
			if strings.HasPrefix(name, "..") {
				continue
			}
			info, err := os.Stat(filepath.Join(dir, name)) // through the links
			if err != nil {
				t.Fatal(err)
			}
			if info.IsDir() {
				walk(name)
				continue
			}
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			found[name] = fmt.Sprintf("%v %s", info.Mode(), data)
		}
	}
	walk("")
	return found
}

func wantShown(t reporter, dir string, want map[string]string) {
	t.Helper()
	if got := shown(t, dir); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAVolumeHasTheLayoutOfTheKubelet(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077)) // it has no say
	dir := filepath.Join(t.TempDir(), "volume")
	files := Files{"key": {Data: []byte("one"), Mode: 0o644}, "a/b/c": {Data: []byte("deep"), Mode: 0o440}}
	if !mustWrite(t, dir, files, everyone) {
		t.Error("the first write changed nothing")
	}
	wantShown(t, dir, map[string]string{"key": "-rw-r--r-- one", "a/b/c": "-r--r----- deep"})
	version, err := os.Readlink(filepath.Join(dir, "..data"))
	if err != nil || !strings.HasPrefix(version, "..2") || strings.Contains(version, "/") {
		t.Errorf("..data is a link to %q, %v; want a version beside it", version, err)
	}
	for name, want := range map[string]string{"key": "..data/key", "a": "..data/a"} {
		if got, err := os.Readlink(filepath.Join(dir, name)); err != nil || got != want {
			t.Errorf("%s is a link to %q, %v; want %q", name, got, err, want)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, version, "a/b")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("a directory is %v, %v; want one that all can pass", info.Mode(), err)
	}
}

func TestAChangeReplacesAllFilesAtOnceAndNoChangeNone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volume")
	first := Files{"a": {Data: []byte("1"), Mode: 0o644}, "b": {Data: []byte("1"), Mode: 0o644}}
	mustWrite(t, dir, first, everyone)
	before, _ := os.Readlink(filepath.Join(dir, "..data"))
	if mustWrite(t, dir, first, everyone) {
		t.Error("the same files were written again")
	}
	if now, _ := os.Readlink(filepath.Join(dir, "..data")); now != before {
		t.Errorf("a program that watches ..data is woken for nothing: %s, %s", before, now)
	}
	for story, second := range map[string]Files{
		"other content": {"a": {Data: []byte("2"), Mode: 0o644}, "b": {Data: []byte("1"), Mode: 0o644}},
		"another mode":  {"a": {Data: []byte("1"), Mode: 0o600}, "b": {Data: []byte("1"), Mode: 0o644}},
		"one more":      {"a": {Data: []byte("1"), Mode: 0o644}, "b": {Data: []byte("1"), Mode: 0o644}, "c": {Mode: 0o644}},
		"one less":      {"a": {Data: []byte("1"), Mode: 0o644}},
		"none":          {},
	} {
		mustWrite(t, dir, first, everyone)
		if !mustWrite(t, dir, second, everyone) {
			t.Errorf("%s: nothing was written", story)
		}
		if got := len(shown(t, dir)); got != len(second) {
			t.Errorf("%s: %d files, want %d", story, got, len(second))
		}
		if entries, _ := filepath.Glob(filepath.Join(dir, "..2*")); len(entries) != 1 {
			t.Errorf("%s: versions %q, want the current one only", story, entries)
		}
	}
}

// A container that may write to the directory can break its own view, and nothing outside.
func TestAWriteNeverLeavesTheVolume(t *testing.T) {
	base := t.TempDir()
	outside := filepath.Join(base, "outside")
	if err := errors.Join(os.Mkdir(outside, 0o755), os.WriteFile(filepath.Join(outside, "kept"), []byte("kept"), 0o644)); err != nil {
		t.Fatal(err)
	}
	files := Files{"key": {Data: []byte("one"), Mode: 0o644}}
	for story, attack := range map[string]func(dir string) error{
		"..data leads outside":            func(dir string) error { return os.Symlink(outside, filepath.Join(dir, "..data")) },
		"..data leads outside by ..":      func(dir string) error { return os.Symlink("../outside", filepath.Join(dir, "..data")) },
		"..data is a directory":           func(dir string) error { return os.MkdirAll(filepath.Join(dir, "..data", "x"), 0o755) },
		"the next ..data leads outside":   func(dir string) error { return os.Symlink(outside, filepath.Join(dir, "..data_tmp")) },
		"a name leads outside":            func(dir string) error { return os.Symlink(outside, filepath.Join(dir, "key")) },
		"a name is a directory":           func(dir string) error { return os.MkdirAll(filepath.Join(dir, "key", "x"), 0o755) },
		"a stray link leads outside":      func(dir string) error { return os.Symlink(outside, filepath.Join(dir, "stray")) },
		"a version leads outside":         func(dir string) error { return os.Symlink(outside, filepath.Join(dir, "..2020")) },
		"what a crash left of a version":  func(dir string) error { return os.MkdirAll(filepath.Join(dir, "..2020_01_01", "x"), 0o755) },
		"what a container has put there":  func(dir string) error { return os.WriteFile(filepath.Join(dir, "mine"), nil, 0o644) },
		"..data points to a version gone": func(dir string) error { return os.Symlink("..gone", filepath.Join(dir, "..data")) },
	} {
		dir := filepath.Join(base, "volume")
		if err := errors.Join(os.Mkdir(dir, 0o755), attack(dir)); err != nil {
			t.Fatal(err)
		}
		mustWrite(t, dir, files, everyone)
		if got := fmt.Sprint(shown(t, dir)); got != "map[key:-rw-r--r-- one]" {
			t.Errorf("%s: the volume shows %s", story, got)
		}
		if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
			t.Errorf("%s: outside there is now %v, %v", story, entries, err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPathsThatNoVolumeHas(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volume")
	for _, name := range []string{"", ".", "..", "../x", "/x", "..data", "..x/y", "a/../../x", "a//b", "a/", "./a"} {
		if _, err := write(dir, Files{name: {Mode: 0o644}}, everyone); err == nil {
			t.Errorf("%q: got no error", name)
		}
	}
	if _, err := write(dir, Files{"a": {}, "a/b": {}}, everyone); err == nil {
		t.Error("a file that is a directory too: got no error")
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was written: %v", err)
	}
}

// A pod that is being removed takes its directory away; a late write must not bring it back.
func TestAVolumeIsNotMadeInAPodThatIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone", "volumes", "v")
	if _, err := write(dir, Files{}, everyone); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want an error", err)
	}
}

func TestOwnersOfAVolume(t *testing.T) {
	if os.Geteuid() != 0 {
		dir := filepath.Join(t.TempDir(), "volume")
		mustWrite(t, dir, Files{"key": {Mode: 0o644}}, ownerOf(fieldsPod(), false, 0))
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("got %v, %v; want it closed to all others", info.Mode(), err)
		}
		return
	}
	type id = int64
	for _, c := range []struct {
		story               string
		users               []id // of the init and the main container
		group               *id
		own                 uint32 // the group that the pod has for itself
		dirMode, fileMode   fs.FileMode
		uid, gid            uint32
		privateUID, fileGID uint32
		tokenIsPrivate      bool
	}{
		{"one user", []id{1000, 1000}, nil, 7000, 0o750 | fs.ModeDir | fs.ModeSetgid, 0o440, 0, 7000, 0, 7000, true},
		{"two users", []id{1000, 2000}, nil, 7000, 0o750 | fs.ModeDir | fs.ModeSetgid, 0o440, 0, 7000, 0, 7000, true},
		{"two users and a group", []id{1000, 2000}, ptr(id(3000)), 7000, 0o750 | fs.ModeDir | fs.ModeSetgid, 0o440, 0, 3000, 0, 3000, true},
		{"one user, of an earlier release", []id{1000, 1000}, nil, 0, 0o500 | fs.ModeDir, 0o400, 1000, 0, 1000, 0, true},
		{"two users, of an earlier release", []id{1000, 2000}, nil, 0, 0o755 | fs.ModeDir, 0o400, 0, 0, 0, 0, false},
	} {
		pod := fieldsPod()
		pod.Spec.InitContainers[0].SecurityContext = asUser(c.users[0])
		pod.Spec.Containers[0].SecurityContext = asUser(c.users[1])
		pod.Spec.SecurityContext = withGroup(c.group)
		dir := filepath.Join(t.TempDir(), "volume")
		mustWrite(t, dir, Files{"private": {Mode: 0o400}}, ownerOf(pod, true, c.own))
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.Stat(filepath.Join(dir, "private"))
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(info.Mode(), ids(info), file.Mode(), ids(file), ownerOf(pod, true, c.own).private)
		want := fmt.Sprint(c.dirMode, [2]uint32{c.uid, c.gid}, c.fileMode, [2]uint32{c.privateUID, c.fileGID}, c.tokenIsPrivate)
		if got != want {
			t.Errorf("%s: got %s, want %s", c.story, got, want)
		}
		if mustWrite(t, dir, Files{"private": {Mode: 0o400}}, ownerOf(pod, true, c.own)) {
			t.Errorf("%s: the same was written again", c.story)
		}
	}
}

// Whatever follows on whatever, the volume shows the last files that were written.
func TestTheLastWriteIsShown(t *testing.T) {
	names := []string{"a", "b", "dir/a", "dir/b", "dir/sub/a", "dir2"}
	rapid.Check(t, func(t *rapid.T) {
		base, err := os.MkdirTemp("", "volume-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(base)
		dir := filepath.Join(base, "volume")
		for range rapid.IntRange(1, 5).Draw(t, "writes") {
			files, want := Files{}, map[string]string{}
			for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID[string]).Draw(t, "names") {
				text := rapid.StringMatching("[ab]{0,2}").Draw(t, "text")
				files[name] = File{Data: []byte(text), Mode: 0o644}
				want[name] = "-rw-r--r-- " + text
			}
			if _, err := write(dir, files, everyone); err != nil {
				t.Fatal(err)
			}
			wantShown(t, dir, want)
		}
	})
}
