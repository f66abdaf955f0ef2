package logs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// readFile reads a log until wanted lines were seen, from a position, and returns the position.
func readFile(t *testing.T, path, position string, wanted int) (lines []string, end string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := testFile(path)
	end = position
	err := l.read(ctx, position, func(b batch) {
		for _, line := range b.lines {
			lines = append(lines, line.text)
		}
		end = b.position
		if len(lines) >= wanted {
			cancel()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines, end
}

func testFile(path string) *logFile {
	m, err := New(Options{Files: map[string]Origin{path: KubeletLog}, Share: 1})
	if err != nil {
		panic(err)
	}
	l := m.readers[0].(*logFile)
	l.filter = &prefilter{} // every line counts
	l.poll = time.Millisecond
	l.throttle.spent = func() time.Duration { return 0 } // tests move from thread to thread, each of which has spent another time
	return l
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func TestAFileIsReadOnAfterARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.log")
	appendTo(t, path, "old\n")
	l := testFile(path)
	_, at, err := l.begin("")
	if err != nil || at.Offset != 4 {
		t.Fatalf("the first time it begins at %+v, %v: want the end", at, err)
	}
	appendTo(t, path, "a\nb\nhalf")
	lines, end := readFile(t, path, positionOf(t, path, 4), 2)
	if want := []string{"a", "b"}; !slices.Equal(lines, want) {
		t.Fatalf("read %q, want %q", lines, want)
	}
	appendTo(t, path, " and half\n")
	if lines, _ := readFile(t, path, end, 1); !slices.Equal(lines, []string{"half and half"}) {
		t.Fatalf("read %q", lines)
	}
}

// positionOf is the position at an offset of a file.
func positionOf(t *testing.T, path string, offset int64) string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	at := place{Offset: offset}
	if err := at.identify(file); err != nil {
		t.Fatal(err)
	}
	return at.String()
}

// While nothing reads it, a log is rotated three times, by renaming.
func TestRotationsWhileItIsNotReadLoseNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.log")
	appendTo(t, path, "1\n2\n")
	_, end := readFile(t, path, positionOf(t, path, 0), 2)
	appendTo(t, path, "3\n")
	for i := 4; i < 7; i++ {
		for n := 3; n > 0; n-- {
			if _, err := os.Stat(fmt.Sprintf("%s.%d", path, n)); err == nil {
				rename(t, fmt.Sprintf("%s.%d", path, n), fmt.Sprintf("%s.%d", path, n+1))
			}
		}
		rename(t, path, path+".1")
		appendTo(t, path, fmt.Sprintf("%d\n", i))
	}
	appendTo(t, path+".2.gz", "compressed\n")
	appendTo(t, path+"-other", "")
	lines, _ := readFile(t, path, end, 4)
	if want := []string{"3", "4", "5", "6"}; !slices.Equal(lines, want) {
		t.Fatalf("read %q, want %q", lines, want)
	}
}

// A log is copied and truncated: what was not read before is read from the copy.
func TestACopiedAndTruncatedLogLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.log")
	appendTo(t, path, "1\n2\n")
	_, end := readFile(t, path, positionOf(t, path, 0), 2)
	appendTo(t, path, "3\n")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	appendTo(t, path+".1", string(data))
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	appendTo(t, path, "four\nfive\nsix\nseven\n") // longer than what was read of the one before
	lines, _ := readFile(t, path, end, 5)
	if want := []string{"3", "four", "five", "six", "seven"}; !slices.Equal(lines, want) {
		t.Fatalf("read %q, want %q", lines, want)
	}
}

// While it is read, a log is written, rotated and truncated at random places. Each line comes once, in order.
func TestAWriterThatRotatesLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.log")
	appendTo(t, path, "")
	const lines = 400
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read := make(chan string, lines)
	start := positionOf(t, path, 0)
	var reading sync.WaitGroup
	reading.Go(func() {
		l := testFile(path)
		seen := 0
		l.read(ctx, start, func(b batch) {
			for _, line := range b.lines {
				read <- line.text
				if seen++; seen == lines {
					cancel()
				}
			}
		})
	})
	rotated := 0
	for i := range lines {
		appendTo(t, path, fmt.Sprintf("line %d\n", i))
		if i%37 == 36 {
			rotated++
			rename(t, path, fmt.Sprintf("%s.%03d", path, 999-rotated))
		}
	}
	reading.Wait()
	close(read)
	i := 0
	for text := range read {
		if want := fmt.Sprintf("line %d", i); text != want {
			t.Fatalf("line %d is %q", i, text)
		}
		i++
	}
	if i != lines {
		t.Fatalf("%d lines were read", i)
	}
}

// A line of megabytes costs no memory, and the one after it is whole.
func TestALineOfMegabytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.log")
	appendTo(t, path, strings.Repeat("x", 3*chunkSize+17)+"\nnext\n")
	lines, _ := readFile(t, path, positionOf(t, path, 0), 2)
	if len(lines) != 2 || len(lines[0]) != maxLine || lines[1] != "next" {
		t.Fatalf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}

// A position in a file that is gone, or that is nonsense, begins with what there is.
func TestAPositionThatIsLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.log")
	appendTo(t, path, "new\n")
	for _, position := range []string{`{"head":1,"headSize":100,"offset":100}`, "nonsense"} {
		if lines, _ := readFile(t, path, position, 1); !slices.Equal(lines, []string{"new"}) {
			t.Errorf("%s: read %q", position, lines)
		}
	}
}
