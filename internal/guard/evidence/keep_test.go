package evidence

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/statusd/statusd/internal/guard"
)

func text(name, content string) Part {
	return Part{name, func(_ context.Context, w io.Writer) error { _, err := io.WriteString(w, content); return err }}
}

func newStore(t *testing.T, o Options) *Store {
	t.Helper()
	if o.Dir == "" {
		o.Dir = filepath.Join(t.TempDir(), "cases")
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func caseAt(second int) guard.Case {
	return guard.Case{At: time.Unix(1700000000+int64(second), 0), Target: guard.TargetKubelet, Reason: "../Process Gone"}
}

func files(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestACaseIsKeptWithWhatCanBeRead(t *testing.T) {
	log := filepath.Join(t.TempDir(), "kubelet.log")
	if err := os.WriteFile(log, []byte(strings.Repeat("old\n", 1000)+"last line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.String() == "/debug/pprof/goroutine?debug=2" {
			_, _ = io.WriteString(w, "goroutine 1 [select]")
		}
	}))
	defer server.Close()
	s := newStore(t, Options{Parts: []Part{
		Tail("kubelet.log", "", log, 14), Goroutines(server.URL, server.Client()), Tail("runtime.log", "", log+".no", 1),
		JSON("audit.json", func() any { return map[string]int{"drift": 2} }),
	}})
	dir, err := s.Keep(t.Context(), caseAt(0))
	if err == nil || !strings.Contains(err.Error(), "runtime.log") || strings.Contains(err.Error(), "audit") {
		t.Errorf("got %v, want that runtime.log is missing", err)
	}
	if got := files(t, dir); got != "audit.json case.json goroutines.txt kubelet.log" {
		t.Errorf("kept %s", got)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "kubelet.log")); string(got) != "old\nlast line\n" {
		t.Errorf("kept the lines %q", got)
	}
	var c guard.Case
	data, err := os.ReadFile(filepath.Join(dir, "case.json"))
	if err := errors.Join(err, json.Unmarshal(data, &c)); err != nil || c.Reason != "../Process Gone" {
		t.Errorf("got %+v (%v)", c, err)
	}
	if filepath.Dir(dir) != s.o.Dir {
		t.Errorf("kept at %s, outside of %s", dir, s.o.Dir)
	}
}

func TestCasesAreBoundedInCountAndBytes(t *testing.T) {
	s := newStore(t, Options{Count: 3, Bytes: 4000, PartBytes: 1500, Parts: []Part{text("log", strings.Repeat("x", 5000))}})
	for i := range 10 {
		dir, err := s.Keep(t.Context(), caseAt(i))
		if err == nil || !strings.Contains(err.Error(), "cut off after 1500 bytes") {
			t.Fatalf("got %v", err)
		}
		if info, err := os.Stat(filepath.Join(dir, "log")); err != nil || info.Size() != 1500 {
			t.Fatalf("a part takes %v (%v)", info, err)
		}
		kept, err := s.List()
		var total int64
		for _, k := range kept {
			total += k.Bytes
		}
		if err != nil || len(kept) > 3 || total > 4000 || kept[len(kept)-1].Dir != dir {
			t.Fatalf("%d cases with %d bytes, the newest %s (%v)", len(kept), total, kept[len(kept)-1].Dir, err)
		}
	}
}

// After the clock was set back, and for two cases of one moment, the newest case is still the last one that is removed.
func TestTheNewestCaseIsKeptWhateverTheClockSays(t *testing.T) {
	s := newStore(t, Options{Count: 3, Bytes: 20000, PartBytes: 8000, Parts: []Part{text("log", strings.Repeat("x", 5000))}})
	for _, second := range []int{100000, 100060, 0, 0, 60, 200000, 5} {
		dir, err := s.Keep(t.Context(), caseAt(second))
		if err != nil {
			t.Fatal(err)
		}
		kept, err := s.List()
		if err != nil || len(kept) == 0 || kept[len(kept)-1].Dir != dir {
			t.Fatalf("after %d s: kept %v (%v), want %s as the newest", second, kept, err, dir)
		}
	}
}

// What a crash has left half written is no case, and goes with the next one.
func TestACaseAppearsAsAWhole(t *testing.T) {
	s := newStore(t, Options{})
	if err := os.MkdirAll(filepath.Join(s.o.Dir, unfinished+"123"), 0o700); err != nil {
		t.Fatal(err)
	}
	if kept, err := s.List(); err != nil || len(kept) != 0 {
		t.Errorf("got %v (%v)", kept, err)
	}
	dir, err := s.Keep(t.Context(), caseAt(0))
	if err != nil || files(t, s.o.Dir) != filepath.Base(dir) {
		t.Errorf("got %q (%v)", files(t, s.o.Dir), err)
	}
}

// A part that hangs ends with its timeout, and the others are kept.
func TestAPartThatHangs(t *testing.T) {
	s := newStore(t, Options{PartTimeout: time.Millisecond, Parts: []Part{
		{"hangs", func(ctx context.Context, w io.Writer) error {
			_, _ = io.WriteString(w, "half")
			<-ctx.Done()
			return ctx.Err()
		}}, text("log", "lines")}})
	dir, err := s.Keep(t.Context(), caseAt(0))
	if !errors.Is(err, context.DeadlineExceeded) || files(t, dir) != "case.json hangs log" {
		t.Errorf("kept %s (%v)", files(t, dir), err)
	}
}

func TestADirectoryThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := newStore(t, Options{Dir: filepath.Join(file, "cases")})
	if dir, err := s.Keep(t.Context(), caseAt(0)); !errors.Is(err, syscall.ENOTDIR) || dir != "" {
		t.Errorf("kept %q (%v)", dir, err)
	}
}

// A full disk takes what fits and says what is missing. Nothing half written is left.
func TestADiskThatIsFull(t *testing.T) {
	s := newStore(t, Options{Parts: []Part{text("log", strings.Repeat("x", 5000)), text("audit", "small")}})
	room := 4000
	s.writeFile = func(path string, data []byte) error {
		if room -= len(data); room < 0 {
			room += len(data)
			return errors.Join(writeFile(path, data[:1]), syscall.ENOSPC)
		}
		return writeFile(path, data)
	}
	dir, err := s.Keep(t.Context(), caseAt(0))
	if !errors.Is(err, syscall.ENOSPC) || files(t, dir) != "audit case.json" {
		t.Errorf("kept %s (%v)", files(t, dir), err)
	}
	room = 0
	if dir, err := s.Keep(t.Context(), caseAt(1)); !errors.Is(err, syscall.ENOSPC) || dir != "" {
		t.Errorf("kept %q (%v)", dir, err)
	}
	if kept, err := s.List(); err != nil || len(kept) != 1 {
		t.Errorf("%d cases (%v)", len(kept), err)
	}
}
