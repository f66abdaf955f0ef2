package wholefile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAFileIsReplacedAsAWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, content := range []string{"a longer content", "short", ""} {
		for _, write := range []func(string, []byte) error{Write, Replace} {
			if err := write(path, []byte(content)); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != content {
				t.Errorf("got %q, %v, want %q", got, err, content)
			}
			content += ", and once more"
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v, %v, want 0600", info.Mode(), err)
	}
	wantFiles(t, path, "file")
}

func TestAFailureLeavesTheOldFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "directory")
	if err := os.MkdirAll(filepath.Join(path, "full"), 0o700); err != nil { // no file can take its name
		t.Fatal(err)
	}
	if err := Write(path, []byte("new")); err == nil {
		t.Error("a directory was replaced by a file")
	}
	wantFiles(t, path, "directory")
	if err := Write(filepath.Join(path, "missing", "file"), nil); err == nil {
		t.Error("wrote into a directory that does not exist")
	}
}

// wantFiles checks that beside path nothing is left.
func wantFiles(t *testing.T, path, want string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 || entries[0].Name() != want {
		t.Errorf("the directory has %v, %v, want %s alone", entries, err, want)
	}
}
