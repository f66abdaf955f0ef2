package logfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// numbered writes lines that count.
type numbered struct {
	*Writer
	next int
}

func (n *numbered) write(lines int) {
	for range lines {
		n.Writer.write("stdout", fmt.Appendf(nil, "line %d\n", n.next), false)
		n.next++
	}
}

// expectLines checks that text is the lines from a number on, up to a number.
func expectLines(t interface {
	Helper()
	Fatalf(string, ...any)
}, text string, from, to int) {
	t.Helper()
	var want strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&want, "line %d\n", i)
	}
	if text != want.String() {
		t.Fatalf("got %d bytes, %.60q … %q; want the lines %d to %d", len(text), text, text[max(0, len(text)-30):], from, to-1)
	}
}

// Whatever is written and rotated between two reads, a reader that follows gets each line once,
// as long as no file is removed that it has not read.
func TestFollowAcrossRotations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "follow")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		w, err := NewWriter(dir, 200, 50)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		lines := &numbered{Writer: w}
		lines.write(rapid.IntRange(0, 20).Draw(t, "before"))
		bursts := rapid.SliceOfN(rapid.IntRange(0, 25), 0, 10).Draw(t, "bursts")
		log, err := Open(dir, Options{Wait: func() (bool, error) {
			if len(bursts) == 0 {
				return true, nil
			}
			lines.write(bursts[0])
			bursts = bursts[1:]
			return len(bursts) == 0, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(log)
		if err := errors.Join(err, log.Close()); err != nil {
			t.Fatal(err)
		}
		expectLines(t, string(text), 0, lines.next)
	})
}

// A reader that opens the log while it is rotated reads a part without gap and repetition.
func TestOpenDuringRotations(t *testing.T) {
	dir := t.TempDir()
	w := newWriter(t, dir, 150, 4)
	lines := &numbered{Writer: w}
	lines.write(1)
	stop := make(chan struct{})
	var writing sync.WaitGroup
	defer func() {
		close(stop)
		writing.Wait()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	writing.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				lines.write(1)
			}
		}
	})
	for range 300 {
		text := readAll(t, dir)
		var first, last, n int
		for line := range strings.Lines(text) {
			var got int
			if _, err := fmt.Sscanf(line, "line %d\n", &got); err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				first, last = got, got-1
			}
			// What rotations have removed since the oldest was opened is lost; nothing comes twice.
			if got <= last {
				t.Fatalf("line %d comes after line %d", got, last)
			}
			last, n = got, n+1
		}
		if n == 0 || last < first {
			t.Fatalf("got %q, want lines", text)
		}
	}
}

// A reader that has listed the files before a rotation does not begin with a younger file.
func TestAYoungerFileIsNotTakenForTheOldest(t *testing.T) {
	dir := t.TempDir()
	w := newWriter(t, dir, 1<<20, 4)
	defer w.Close()
	lines := &numbered{Writer: w}
	for highest := range 3 {
		lines.write(1)
		if file, err := openIfOldest(Newest(dir), highest); err != nil || file == nil {
			t.Errorf("before rotation %d: got %v, %v; want the oldest file", highest+1, file, err)
		} else {
			file.Close()
		}
		if err := w.rotate(); err != nil {
			t.Fatal(err)
		}
		if file, err := openIfOldest(Newest(dir), highest); err != nil || file != nil {
			t.Errorf("after rotation %d: got %v, %v; want another look", highest+1, file, err)
		}
	}
	oldest, err := openOldest(Newest(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer oldest.Close()
	if text, err := io.ReadAll(oldest); err != nil || !strings.HasSuffix(string(text), " line 0\n") {
		t.Errorf("the oldest file is %q, %v; want the first line", text, err)
	}
}

// A rotation that was interrupted between two names does not confuse a reader.
func TestFollowAcrossARotationThatWasInterrupted(t *testing.T) {
	dir := t.TempDir()
	w := newWriter(t, dir, 1<<20, 4)
	lines := &numbered{Writer: w}
	lines.write(3)
	steps := []func(){
		func() { // the newest has got its next name, and there is no newer one
			if err := os.Rename(w.path(0), w.path(1)); err != nil {
				t.Error(err)
			}
			lines.write(3)
		},
		func() { // there is a gap before it
			if err := os.Rename(w.path(1), w.path(2)); err != nil {
				t.Error(err)
			}
			if err := w.rotate(); err != nil {
				t.Error(err)
			}
			lines.write(3)
		},
	}
	log, err := Open(dir, Options{Wait: func() (bool, error) {
		steps[0]()
		steps = steps[1:]
		return len(steps) == 0, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(log)
	if err := errors.Join(err, log.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	expectLines(t, string(text), 0, 9)
}

// Half an entry is what a reader can see of a write that is under way.
func TestFollowWaitsForTheRestOfAnEntry(t *testing.T) {
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	pieces := []string{"2026-01-02T15:04:05.000000000Z st", "dout F on", "e\n2026", "-01-02T15:04:05.000000001Z stdout F two\n"}
	log, err := Open(dir, Options{Wait: func() (bool, error) {
		_, err := file.WriteString(pieces[0])
		pieces = pieces[1:]
		return len(pieces) == 0, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(log)
	if err := errors.Join(err, log.Close()); err != nil || string(text) != "one\ntwo\n" {
		t.Errorf("got %q, %v; want both lines", text, err)
	}
}

func TestTheDirectoryOfAFollowedLogIsRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	w := newWriter(t, dir, 1<<20, 4)
	lines := &numbered{Writer: w}
	lines.write(2)
	log, err := Open(dir, Options{Wait: func() (bool, error) {
		if err := os.RemoveAll(dir); err != nil {
			return false, err
		}
		lines.write(2)
		return true, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(log)
	if err := errors.Join(err, log.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	expectLines(t, string(text), 0, 4)
}

// Each byte of what a container writes comes out again, but for the end of its last line.
func TestBinaryOutputSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "binary")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		unit := rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, "unit")
		output := bytes.Repeat(unit, rapid.SampledFrom([]int{1, 700, 3000}).Draw(t, "times"))
		w, err := NewWriter(dir, 20_000, 100)
		if err != nil {
			t.Fatal(err)
		}
		w.Copy("stdout", bytes.NewReader(output))
		log, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(log)
		if err := errors.Join(err, log.Close(), w.Close()); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(bytes.TrimSuffix(got, []byte("\n")), bytes.TrimSuffix(output, []byte("\n"))) {
			t.Fatalf("got %d bytes, want the %d that were written", len(got), len(output))
		}
	})
}

// entries is a log as text, for what depends on times and streams.
func entries(t *testing.T, lines ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "log"), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestSelections(t *testing.T) {
	dir := entries(t,
		"2026-01-02T15:04:01.000000000Z stdout F a",
		"2026-01-02T15:04:02.000000000Z stderr F b",
		"2026-01-02T15:04:03.000000000Z stdout P c",
		"2026-01-02T15:04:04.000000000Z stdout F d",
		"2026-01-02T15:04:05.000000000Z stderr F e",
		"2026-01-02T15:04:06.000000000Z stdout P f",
	)
	at := func(second int) time.Time { return time.Date(2026, 1, 2, 15, 4, second, 0, time.UTC) }
	for _, c := range []struct {
		story   string
		options Options
		want    string
	}{
		{"all", Options{}, "a\nb\ncd\ne\nf"},
		{"no lines", Options{Tail: new(int64(0))}, ""},
		{"a line without an end is a line", Options{Tail: new(int64(1))}, "f"},
		{"three lines", Options{Tail: new(int64(3))}, "cd\ne\nf"},
		{"more lines than there are", Options{Tail: new(int64(99))}, "a\nb\ncd\ne\nf"},
		{"two lines of a stream", Options{Tail: new(int64(2)), Stream: "stdout"}, "cd\nf"},
		{"a stream", Options{Stream: "stderr"}, "b\ne\n"},
		{"since", Options{Since: at(5)}, "e\nf"},
		{"since the middle of a line, which belongs to its beginning", Options{Since: at(4)}, "e\nf"},
		{"since that very time", Options{Since: at(3)}, "cd\ne\nf"},
		{"since, in another time zone", Options{Since: at(5).In(time.FixedZone("", 3600))}, "e\nf"},
		{"since and tail", Options{Since: at(2), Tail: new(int64(2))}, "e\nf"},
		{"times", Options{Timestamps: true, Tail: new(int64(3))}, "2026-01-02T15:04:03.000000000Z cd\n2026-01-02T15:04:05.000000000Z e\n2026-01-02T15:04:06.000000000Z f"},
	} {
		log, err := Open(dir, c.options)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(log)
		if err := errors.Join(err, log.Close()); err != nil || string(got) != c.want {
			t.Errorf("%s: got %q, %v; want %q", c.story, got, err, c.want)
		}
	}
}

// counting counts what is read.
type counting struct {
	io.ReaderAt
	bytes int
}

func (c *counting) ReadAt(p []byte, at int64) (int, error) {
	c.bytes += len(p)
	return c.ReaderAt.ReadAt(p, at)
}

func TestTailReadsTheEndOnly(t *testing.T) {
	text := strings.Repeat("2026-01-02T15:04:01.000000000Z stdout F a line\n", 1_000_000)
	file := &counting{ReaderAt: strings.NewReader(text)}
	n := 0
	stopped, err := fromEnd(file, int64(len(text)), func(int64, []byte) bool { n++; return n == 10 })
	if err != nil || !stopped || file.bytes > blockBytes {
		t.Errorf("got %v, %v after %d bytes; want ten lines of one block", stopped, err, file.bytes)
	}
}

// Seen from the end, a file has the same lines as from the beginning.
func TestLinesFromTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(rapid.IntRange(0, 50_000)).Draw(t, "lengths")
		var text strings.Builder
		for _, n := range lines {
			text.WriteString(strings.Repeat("x", n) + "\n")
		}
		text.WriteString(strings.Repeat("y", rapid.IntRange(0, 10).Draw(t, "half")))
		all, end := text.String(), int64(text.Len())
		_, err := fromEnd(strings.NewReader(all), end, func(at int64, line []byte) bool {
			if at != end || all[at-int64(len(line)):at] != string(line) || bytes.IndexByte(line[:len(line)-1], '\n') >= 0 {
				t.Fatalf("got a line of %d bytes that ends at %d, want one that ends at %d", len(line), at, end)
			}
			end = at - int64(len(line))
			return false
		})
		if err != nil || end != 0 {
			t.Fatalf("%d bytes were left out, %v", end, err)
		}
	})
}

// A reader that has listed the files before some rotations either notices or takes the right one.
func TestAListThatIsTooOld(t *testing.T) {
	for _, rotations := range []int{0, 1, 2, 3, 5} {
		dir := t.TempDir()
		w := newWriter(t, dir, 1<<20, 6)
		lines := &numbered{Writer: w}
		for range 3 {
			lines.write(1)
			if err := w.rotate(); err != nil {
				t.Fatal(err)
			}
		}
		oldest, err := openOldest(Newest(dir))
		if err != nil {
			t.Fatal(err)
		}
		info, err := oldest.Stat()
		if err != nil {
			t.Fatal(err)
		}
		second, err := os.Stat(w.path(2))
		if err != nil {
			t.Fatal(err)
		}
		found, err := numbers(Newest(dir))
		if err != nil {
			t.Fatal(err)
		}
		for range rotations {
			if err := w.rotate(); err != nil {
				t.Fatal(err)
			}
		}
		next, settled, err := after(Newest(dir), found, info)
		if err != nil {
			t.Fatal(err)
		}
		if settled {
			if got, err := next.Stat(); err != nil || !os.SameFile(got, second) {
				t.Errorf("after %d rotations: got %v, %v; want the second file", rotations, got, err)
			}
		}
		if rotations == 0 && !settled {
			t.Error("without a rotation: the list was taken for too old")
		}
		if err := errors.Join(oldest.Close(), w.Close()); err != nil {
			t.Fatal(err)
		}
		if next != nil {
			next.Close()
		}
	}
}
