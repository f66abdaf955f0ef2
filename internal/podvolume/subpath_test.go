package podvolume

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A sub-path that is made has the mode of its volume.
func TestSubPath_HasTheModeOfItsVolume(t *testing.T) {
	volume := t.TempDir()
	want := fs.ModeDir | fs.ModeSticky | 0o777
	if err := os.Chmod(volume, want); err != nil {
		t.Fatal(err)
	}
	if err := MakeSubPath(volume, "a/b"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"a", "a/b"} {
		info, err := os.Stat(filepath.Join(volume, path))
		if err != nil || info.Mode() != want {
			t.Errorf("%s: got %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
}
