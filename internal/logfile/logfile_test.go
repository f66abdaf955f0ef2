package logfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func newWriter(t *testing.T, dir string, maxBytes int64, maxFiles int) *Writer {
	t.Helper()
	w, err := NewWriter(dir, maxBytes, maxFiles)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func read(t *testing.T, dir string, tail int, timestamps bool) string {
	t.Helper()
	options := Options{Timestamps: timestamps}
	if tail > 0 {
		options.Tail = new(int64(tail))
	}
	log, err := Open(dir, options)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(log)
	if err := errors.Join(err, log.Close()); err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestEntriesHaveTheFormatOfCRI(t *testing.T) {
	dir := t.TempDir()
	w := newWriter(t, dir, 1<<20, 2)
	w.Copy("stdout", strings.NewReader("one\n\ntwo words"))
	w.Copy("stderr", strings.NewReader(strings.Repeat("x", maxPiece+1)+"\n"))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	const stamp = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z `
	want := regexp.MustCompile(fmt.Sprintf(`^%[1]sstdout F one\n%[1]sstdout F \n%[1]sstdout F two words\n%[1]sstderr P x{1000}`, stamp))
	if !want.Match(data) || !strings.Contains(string(data), " stderr F x\n") {
		t.Errorf("got %.200q…, want entries like %s", data, want)
	}
}

func TestRotationKeepsTheNewest(t *testing.T) {
	for _, maxFiles := range []int{1, 2, 4} {
		dir := t.TempDir()
		w := newWriter(t, dir, 400, maxFiles)
		for i := range 100 {
			w.Copy("stdout", strings.NewReader(fmt.Sprintf("line %d\n", i)))
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != maxFiles {
			t.Errorf("%d files at most: got %v, %v", maxFiles, entries, err)
		}
		lines := strings.Split(strings.TrimSuffix(read(t, dir, 0, false), "\n"), "\n")
		for i, line := range lines {
			if want := fmt.Sprint("line ", 100-len(lines)+i); line != want {
				t.Fatalf("%d files at most: line %d of %d is %q, want %q", maxFiles, i, len(lines), line, want)
			}
		}
	}
}

func TestALogIsContinued(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{"one\n", "two\n"} {
		w := newWriter(t, dir, 1<<20, 2)
		w.Copy("stdout", strings.NewReader(text))
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, dir, 0, false); got != "one\ntwo\n" {
		t.Errorf("got %q, want both lines", got)
	}
}

func TestTailCountsLinesAcrossFilesAndPieces(t *testing.T) {
	dir := t.TempDir()
	w := newWriter(t, dir, 2*maxPiece, 3)
	long := strings.Repeat("y", 3*maxPiece)
	w.Copy("stdout", strings.NewReader("first\n"+long+"\nlast\n"))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got := read(t, dir, 2, false); got != long+"\nlast\n" {
		t.Errorf("got %d bytes, want the long line and the last one", len(got))
	}
	if got := read(t, dir, 1, true); !regexp.MustCompile(`^\S+Z last\n$`).MatchString(got) {
		t.Errorf("got %q, want a time and the last line", got)
	}
}

func TestHalfAnEntryIsLeftOut(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "log"), []byte("2026-01-02T15:04:05Z stdout F whole\ngarbage\n2026-01-02T15:04:05Z stdout F ha"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := read(t, dir, 0, false); got != "whole\n" {
		t.Errorf("got %q, want the whole entry only", got)
	}
}

func TestNoLogIsAnError(t *testing.T) {
	if _, err := Open(t.TempDir(), Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want fs.ErrNotExist", err)
	}
}

func TestTailOfTheWriter(t *testing.T) {
	var all strings.Builder
	for i := range 3000 {
		fmt.Fprintln(&all, i)
	}
	for _, c := range []struct{ story, in, want string }{
		{"nothing", "", ""},
		{"little", "a\nb", "a\nb"},
		{"80 lines", all.String(), all.String()[strings.Index(all.String(), "2920\n"):]},
		{"2048 bytes", strings.Repeat("z", 10000), strings.Repeat("z", 2048)},
		{"between runes", strings.Repeat("€", 5000), strings.Repeat("€", 2048/3)},
	} {
		w := newWriter(t, t.TempDir(), 1<<20, 1)
		w.Copy("stdout", strings.NewReader(c.in))
		if got := w.Tail(); got != c.want {
			t.Errorf("%s: got %d bytes %.30q…, want %d bytes %.30q…", c.story, len(got), got, len(c.want), c.want)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestLostOutputIsTold(t *testing.T) {
	w := newWriter(t, t.TempDir(), 1<<20, 1)
	w.file.Close()
	w.Copy("stdout", strings.NewReader("lost\n")) // must not wait, and must not panic
	if err := w.Close(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("got %v, want the error of the write", err)
	}
}

// Whatever comes in, what comes out survives a round trip through JSON, is a suffix of
// valid input, and is as long as it can be.
func TestLastBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.Byte()).Draw(t, "text"))
		if rapid.Bool().Draw(t, "valid") {
			text = rapid.String().Draw(t, "string")
		}
		n := rapid.IntRange(0, 40).Draw(t, "n")
		got := LastBytes(text, n)
		valid := strings.ToValidUTF8(text, "\uFFFD")
		if !utf8.ValidString(got) || len(got) > n || !strings.HasSuffix(valid, got) {
			t.Fatalf("%q cut to %d: got %q", text, n, got)
		}
		if len(valid) > n && len(got) < n-utf8.UTFMax+1 {
			t.Fatalf("%q cut to %d: got %q, which is too short", text, n, got)
		}
	})
}
