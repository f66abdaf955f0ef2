package mounts

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// fill makes some directories, files and links in a directory.
func fill(t *testing.T, dir string) {
	t.Helper()
	for i := range 3 {
		deep := filepath.Join(dir, string(rune('a'+i)), "b", "c")
		if err := os.MkdirAll(deep, 0o755); err != nil {
			t.Fatal(err)
		}
		err := errors.Join(os.WriteFile(filepath.Join(deep, "file"), []byte("x"), 0o400), os.Symlink("/", filepath.Join(deep, "link")), os.Symlink("nowhere", filepath.Join(deep, "broken")))
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestRemoveAll_DirectoriesFilesAndLinks(t *testing.T) {
	outside, dir := t.TempDir(), filepath.Join(t.TempDir(), "dir")
	fill(t, outside)
	fill(t, dir)
	if err := os.Symlink(outside, filepath.Join(dir, "outside")); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"", ", which is gone already"} {
		if err := RemoveAll(dir); err != nil {
			t.Fatalf("directory%s: %v", what, err)
		}
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want no directory", err)
	}
	if _, err := os.Stat(filepath.Join(outside, "a", "b", "c", "file")); err != nil {
		t.Errorf("what a link leads to is gone: %v", err)
	}
	file := filepath.Join(outside, "file")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), RemoveAll(file), RemoveAll(filepath.Join(outside, "no", "such", "directory"))); err != nil {
		t.Error(err)
	}
}

func TestRemoveAll_ManyFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 3000 {
		if err := os.WriteFile(filepath.Join(dir, string(rune(0x4e00+i))), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want no directory", err)
	}
}
