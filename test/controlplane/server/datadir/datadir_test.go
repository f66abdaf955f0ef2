package datadir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func open(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Open(path)
	if err != nil {
		t.Fatalf("open %s: %v", path, err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func TestSecondOpenSaysWhoHoldsTheDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	first := open(t, path)

	_, err := Open(path)
	if !errors.Is(err, ErrInUse) {
		t.Fatalf("second open: got %v, want ErrInUse while the first holds the lock", err)
	}
	for _, want := range []string{path, "process ", "--data-dir"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("message %q does not mention %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("message %q has more than one line", err)
	}

	if err := first.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	open(t, path)
}

func TestPortIsRememberedAcrossOpens(t *testing.T) {
	path := t.TempDir()
	d := open(t, path)
	if port, err := d.Port(); err != nil || port != 0 {
		t.Fatalf("port of a new directory: got %d, %v, want 0", port, err)
	}
	if err := d.SetPort(21234); err != nil {
		t.Fatalf("set port: %v", err)
	}
	d.Close()
	if port, err := open(t, path).Port(); err != nil || port != 21234 {
		t.Errorf("port after reopening: got %d, %v, want 21234", port, err)
	}
}

func TestDamagedPortIsAnErrorThatNamesTheFile(t *testing.T) {
	for _, content := range []string{"", "0", "70000", "x"} {
		d := open(t, t.TempDir())
		if err := os.WriteFile(d.join(portFile), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		port, err := d.Port()
		if err == nil || !strings.Contains(err.Error(), d.join(portFile)) {
			t.Errorf("port file %q: got %d, %v, want an error that names the file", content, port, err)
		}
	}
}

func TestExistingRefusesADirectoryWithoutAControlPlane(t *testing.T) {
	path := t.TempDir()
	if _, err := Existing(path); err == nil {
		t.Error("an empty directory was taken for one of a control plane")
	}
	if err := open(t, path).SetPort(21234); err != nil {
		t.Fatal(err)
	}
	if _, err := Existing(path); err != nil {
		t.Errorf("beside the server that holds the lock: got %v, want no error", err)
	}
}

func TestWriteFileReplacesAndLeavesNothingElse(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, content := range []string{"first", "second, longer", "3"} {
		if err := WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatalf("write %q: %v", content, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("got %q, %v, want %q", got, err, content)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v, want 0600: the files hold keys", info.Mode().Perm(), err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("got %d files in the directory, want 1: temporary files stay behind", len(entries))
	}
}

func TestFailedWriteLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(path, "child"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, []byte("x"), 0o600); err == nil {
		t.Fatal("a directory was overwritten by a file")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("got %d entries, want 1: the temporary file stays behind", len(entries))
	}
}

func TestClearAddressWithdrawsAndMayBeRepeated(t *testing.T) {
	d := open(t, t.TempDir())
	if err := d.SetAddress("https://127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.ClearAddress(); err != nil {
			t.Fatalf("clear: %v", err)
		}
	}
	if _, err := os.Stat(d.join(addressFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the address is still published: %v", err)
	}
}
