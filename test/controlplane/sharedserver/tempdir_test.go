package sharedserver

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTempDir_FollowsTMPDIR(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir, err := TempDir("data-*")
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(dir) != filepath.Clean(os.Getenv("TMPDIR")) {
		t.Errorf("made %s, want it in %s", dir, os.Getenv("TMPDIR"))
	}
}
