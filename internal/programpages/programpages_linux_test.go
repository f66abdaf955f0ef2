package programpages

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// mapFile maps a file of four pages as the kernel maps a program, and reads all of it.
func mapFile(t *testing.T, path string) []byte {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	pages, err := unix.Mmap(int(file.Fd()), 0, 4*os.Getpagesize(), unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_POPULATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(pages) })
	return pages
}

// resident is how many KiB of a file are mapped.
func resident(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), path+"\n")
	if !found {
		t.Fatalf("%s is not mapped", path)
	}
	for line := range strings.Lines(after) {
		if fields := strings.Fields(line); fields[0] == "Rss:" {
			return fields[1]
		}
	}
	t.Fatal("smaps has no Rss")
	return ""
}

func TestDrop(t *testing.T) {
	path := filepath.Join(t.TempDir(), "with a space")
	content := bytes.Repeat([]byte("statusd "), 4*os.Getpagesize()/8)
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	pages := mapFile(t, path)
	if got := resident(t, path); got == "0" {
		t.Fatalf("before: %s KiB are mapped", got)
	}
	if err := drop(path); err != nil {
		t.Fatal(err)
	}
	if got := resident(t, path); got != "0" {
		t.Errorf("got %s KiB that are mapped, want none", got)
	}
	if !bytes.Equal(pages, content) {
		t.Error("the pages have another content")
	}
}

// The dynamic linker changes pages and makes them read-only, as do debuggers: what is in the file would be wrong.
func TestDrop_LeavesChangedPages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relocated")
	if err := os.WriteFile(path, make([]byte, 4*os.Getpagesize()), 0o644); err != nil {
		t.Fatal(err)
	}
	pages := mapFile(t, path)
	if err := unix.Mprotect(pages, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		t.Fatal(err)
	}
	pages[0] = 7
	if err := unix.Mprotect(pages, unix.PROT_READ); err != nil {
		t.Fatal(err)
	}
	if err := drop(path); err != nil {
		t.Fatal(err)
	}
	if pages[0] != 7 {
		t.Error("a change of a page is lost")
	}
}

// The program goes on.
func TestDrop_OfThisProgram(t *testing.T) {
	if err := Drop(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Repeat("go on", 2); got != "go ongo on" {
		t.Errorf("got %q", got)
	}
}
