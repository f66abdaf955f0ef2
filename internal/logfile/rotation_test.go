package logfile

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func readAll(t *testing.T, dir string) string {
	t.Helper()
	log, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	text, err := io.ReadAll(log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A directory in the way of each name that a rotation uses: older entries stay, and when
// the way is free the log goes on.
func TestARotationThatFailsLosesNoOlderLog(t *testing.T) {
	for _, inTheWay := range []string{"log.new", "log.2"} {
		dir := t.TempDir()
		w, err := NewWriter(dir, 1000, 3)
		if err != nil {
			t.Fatal(err)
		}
		line := 0
		write := func(n int) {
			for range n {
				w.write("stdout", fmt.Appendf(nil, "line %03d\n", line), false)
				line++
			}
		}
		obstacle := filepath.Join(dir, inTheWay)
		if err := os.MkdirAll(filepath.Join(obstacle, "x"), 0o700); err != nil {
			t.Fatal(err)
		}
		write(100)
		if err := os.RemoveAll(obstacle); err != nil {
			t.Fatal(err)
		}
		text := readAll(t, dir)
		for i := range 10 {
			if want := fmt.Sprintf("line %03d\n", i); !strings.Contains(text, want) {
				t.Errorf("%s is in the way: lost %q", inTheWay, want)
			}
		}
		info, err := os.Stat(filepath.Join(dir, "log"))
		if err != nil || info.Size() > 2*1000 {
			t.Errorf("%s is in the way: got %v, %v; want at most twice the size", inTheWay, info, err)
		}
		write(2) // the first may come before the next try
		if text := readAll(t, dir); !strings.HasSuffix(text, "line 101\n") {
			t.Errorf("%s was in the way: the log ends with %q", inTheWay, text[max(0, len(text)-20):])
		}
		if w.Close() == nil {
			t.Errorf("%s was in the way: lost entries are no error", inTheWay)
		}
	}
}

// An entry of which the disk took a part only does not spoil the next.
func TestHalfAnEntryDoesNotSwallowTheNext(t *testing.T) {
	dir := t.TempDir()
	w, err := NewWriter(dir, 1<<20, 3)
	if err != nil {
		t.Fatal(err)
	}
	w.write("stdout", []byte("first\n"), false)
	if _, err := w.file.WriteString("2026-11-15T12:00:00.000000000Z stdout F hal"); err != nil {
		t.Fatal(err)
	}
	w.broken = true // what a short write leaves
	w.write("stdout", []byte("second\n"), false)
	w.write("stdout", []byte("third\n"), false)
	if got, want := readAll(t, dir), "first\nhal\nsecond\nthird\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
