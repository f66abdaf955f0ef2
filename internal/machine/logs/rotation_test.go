package logs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// numbered are lines of about 1 KB with their numbers.
func numbered(from, to int) string {
	var text strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&text, "%d %s\n", i, strings.Repeat("x", 1000))
	}
	return text.String()
}

// readNumbered reads a log from its beginning until it has the line with the last number, and calls between after the first
// batch. It returns the numbers and how many bytes were lost.
func readNumbered(t *testing.T, path string, last int, between func()) (numbers []int, lost int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := testFile(path).read(ctx, positionOf(t, path, 0), func(b batch) {
		lost += b.lostBytes
		for _, l := range b.lines {
			var n int
			if _, err := fmt.Sscan(l.text, &n); err != nil {
				t.Errorf("no number in %.50q", l.text)
			}
			if numbers = append(numbers, n); n == last {
				cancel()
			}
		}
		if between != nil {
			between()
			between = nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return numbers, lost
}

func inOrder(t *testing.T, numbers []int, want int) {
	t.Helper()
	for i, n := range numbers {
		if n != i {
			t.Fatalf("line %d has the number %d", i, n)
		}
	}
	if len(numbers) != want {
		t.Fatalf("%d lines, want %d", len(numbers), want)
	}
}

// copyAndTruncate is what logrotate's copytruncate does.
func copyAndTruncate(t *testing.T, path, to string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	appendTo(t, to, string(data))
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
}

// Between two reads a log is copied and truncated, and grows beyond the place up to which it was read.
func TestALogThatGrowsBackWhileItIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.log")
	appendTo(t, path, numbered(0, 1000))
	numbers, lost := readNumbered(t, path, 2999, func() {
		copyAndTruncate(t, path, path+".1")
		appendTo(t, path, numbered(1000, 3000))
	})
	inOrder(t, numbers, 3000)
	if lost != 0 {
		t.Errorf("%d bytes are lost", lost)
	}
}

// A log is copied, and truncated only after the copy was read, or after a part of it was.
func TestACopyThatIsReadBeforeTheLogIsTruncated(t *testing.T) {
	for _, copied := range []int{300, 1000} {
		path := filepath.Join(t.TempDir(), "kubelet.log")
		appendTo(t, path, numbered(0, 1000))
		rename(t, path, path+".2")
		appendTo(t, path, numbered(1000, 2000))
		appendTo(t, path+".1", numbered(1000, 1000+copied))
		position := positionOf(t, path+".2", 0)
		var numbers []int
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		err := testFile(path).read(ctx, position, func(b batch) {
			for _, l := range b.lines {
				var n int
				fmt.Sscan(l.text, &n)
				if numbers = append(numbers, n); n == 1999 {
					cancel()
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		inOrder(t, numbers, 2000)
	}
}

// Files of the same lines that were rotated by renaming are no copies of each other.
func TestGenerationsOfTheSameLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.log")
	text := strings.Repeat("always the same\n", 1000)
	appendTo(t, path, text)
	first, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	begun, known := born(first)
	position := positionOf(t, path, 0)
	rename(t, path, path+".1")
	for again := false; !again; { // until the clock of the file system has moved on
		appendTo(t, path, text)
		second, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		next, _ := born(second)
		second.Close()
		if again = !known || next.After(begun); !again {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	if known {
		if lines, _ := readFile(t, path, position, 2000); len(lines) != 2000 {
			t.Errorf("read %d lines, want 2000", len(lines))
		}
	}
}

// A writer that does not append leaves a hole of zeros when its log is copied and truncated. The first line after the hole
// counts like the others.
func TestAWriterThatLeavesAHole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.log")
	writer, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	write := func(text string) {
		if _, err := writer.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	write(numbered(0, 1000))
	numbers, _ := readNumbered(t, path, 1009, func() {
		copyAndTruncate(t, path, path+".1")
		write(numbered(1000, 1010))
	})
	inOrder(t, numbers, 1010)
}

// Two generations that begin alike: the inode tells in which of them the place is.
func TestGenerationsThatBeginAlike(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.log")
	banner := strings.Repeat("the same banner\n", 100)
	appendTo(t, path, banner+"one\n")
	rename(t, path, path+".1")
	appendTo(t, path, banner)
	position := positionOf(t, path, int64(len(banner)))
	appendTo(t, path, "two\n")
	if lines, _ := readFile(t, path, position, 1); !slices.Equal(lines, []string{"two"}) {
		t.Errorf("read %q", lines)
	}
}

// Generations that are removed before they were read are counted, and the oldest one that is left is read.
func TestGenerationsThatAreRemovedBeforeTheyWereRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.log")
	appendTo(t, path, numbered(0, 2000))
	const removed = 1000
	var l *logFile
	numbers, lost := readNumbered(t, path, 3999, func() {
		rename(t, path, path+".2")
		appendTo(t, path+".1", numbered(2000, 2000+removed))
		appendTo(t, path, numbered(3000, 4000))
		l = testFile(path)
	})
	inOrder(t, numbers, 4000) // nothing was removed
	if lost != 0 {
		t.Errorf("%d bytes are lost, but all generations were there", lost)
	}

	// The one in the middle is seen, and is gone when the first one is finished.
	file, err := os.Open(path + ".2")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	behind, err := l.survey(file, place{})
	if want := size(t, path+".2") + size(t, path+".1") + size(t, path); err != nil || behind != want {
		t.Errorf("%d bytes are left to be read, %v, want %d", behind, err, want)
	}
	middle, err := os.Open(path + ".1")
	if err != nil {
		t.Fatal(err)
	}
	defer middle.Close()
	if behind, err := l.survey(middle, place{}); err != nil || behind != size(t, path+".1")+size(t, path) {
		t.Errorf("in the second one %d bytes are left to be read, %v", behind, err)
	}
	l.surveyed = time.Time{}
	if _, err := l.survey(file, place{}); err != nil {
		t.Fatal(err)
	}
	want := size(t, path+".1")
	if err := os.Remove(path + ".1"); err != nil {
		t.Fatal(err)
	}
	if next, _, err := l.next(file, place{}); err != nil || next == nil || l.lost != want {
		t.Errorf("%v: %d bytes are lost, want %d", err, l.lost, want)
	} else {
		next.Close()
	}
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// A log whose last line has no end is rotated: the line counts.
func TestALastLineWithoutAnEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.log")
	appendTo(t, path, "one\nlast words")
	position := positionOf(t, path, 0)
	rename(t, path, path+".1")
	appendTo(t, path, "two\n")
	lines, end := readFile(t, path, position, 3)
	if want := []string{"one", "last words", "two"}; !slices.Equal(lines, want) {
		t.Errorf("read %q, want %q", lines, want)
	}
	appendTo(t, path, "three\n")
	if lines, _ := readFile(t, path, end, 1); !slices.Equal(lines, []string{"three"}) {
		t.Errorf("read %q", lines)
	}
}

// A line of more than a chunk that is written in pieces is one line, also for a reader that begins within it.
func TestALongLineInPieces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.log")
	appendTo(t, path, strings.Repeat("x", chunkSize+chunkSize/2))
	lines, end := readFile(t, path, positionOf(t, path, 0), 1)
	if len(lines) != 1 || len(lines[0]) != maxLine {
		t.Fatalf("%d lines", len(lines))
	}
	appendTo(t, path, strings.Repeat("y", 3*chunkSize)+" the end of the long line\nnext\n")
	if lines, _ := readFile(t, path, end, 1); !slices.Equal(lines, []string{"next"}) {
		t.Errorf("%d lines, the first is %.50q", len(lines), lines[0])
	}
}

// Lines of bytes that are no text, with ends of both kinds.
func TestALogThatIsNoText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.log")
	appendTo(t, path, "PLEG is not healthy\x00\xff\xfe\r\n\x00\x00\n\xff\xff\xff\n\r\nPLEG is not healthy: \u00e4\r\n")
	lines, _ := readFile(t, path, positionOf(t, path, 0), 5)
	want := []string{"PLEG is not healthy\x00\uFFFD", "\x00\x00", "\uFFFD", "", "PLEG is not healthy: \u00e4"}
	if !slices.Equal(lines, want) {
		t.Errorf("read %q, want %q", lines, want)
	}
	l := testFile(path)
	rules, err := compile(DefaultRules())
	if err != nil {
		t.Fatal(err)
	}
	l.filter = newPrefilter(rules, []Origin{KubeletLog})
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if b := l.batchOf(bytes.Clone(data), place{}, false); b.count != 5 || len(b.lines) != 2 {
		t.Errorf("%d lines, of which %d may matter", b.count, len(b.lines))
	}
}

// What is lost, and a log that is far behind, are reported like what is found, once.
func TestAReaderThatIsBehind(t *testing.T) {
	m, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	m.sources["kubelet.log"] = &Source{Name: "kubelet.log"}
	for i, b := range []batch{
		{behind: farBehind - 1},
		{behind: farBehind},
		{behind: 2 * farBehind, lostBytes: 5e6},
		{behind: 10},
		{behind: 3 * farBehind},
		{lost: 7},
		{gone: true},
	} {
		b.origin, b.position = KubeletLog, fmt.Sprint(i)
		m.take("kubelet.log", b)
	}
	var got []string
	for _, p := range m.Report().Problems {
		got = append(got, fmt.Sprintf("%s ×%d %s", p.Reason, p.Count, p.Text))
	}
	want := []string{
		"LogBehind ×1 kubelet.log: 64 MiB are left to be read: the log is written faster than 10% of one CPU can read",
		"LogLinesLost ×1 kubelet.log: 4.77 MiB were removed before they were read",
		"LogBehind ×1 kubelet.log: 192 MiB are left to be read: the log is written faster than 10% of one CPU can read",
		"LogLinesLost ×2 kubelet.log: the place up to which it was read is gone; reading begins with the oldest line that is there",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if s := m.sources["kubelet.log"]; s.Lost != 7 || s.LostBytes != 5e6 {
		t.Errorf("lost are %d lines and %d bytes", s.Lost, s.LostBytes)
	}
}
