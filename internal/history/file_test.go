package history

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
)

// life runs a store with a file, lets something happen, and stops it in order.
func life(t testing.TB, options Options, happen func(*Store)) *Store {
	t.Helper()
	s := New(options)
	run(t, s, func() { happen(s) })
	return s
}

func run(t testing.TB, s *Store, happen func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	happen()
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func newFile(t testing.TB) string { return filepath.Join(t.TempDir(), "history") }

// twoPods is a history of some variety.
func twoPods(s *Store) {
	r := report(s, "web")
	r.set(started("web", false))
	r.accepted()
	r.set(started("web", true))
	s.Add(ref("web"), Record{Kind: KindProbe, Subject: "readiness", Container: "web", To: "passed"})
	report(s, "gone").set(&v1.PodStatus{Phase: v1.PodSucceeded})
	s.Removed("gone", time.Now())
	s.Add(Ref{}, Record{Kind: KindNode, Subject: "agent", To: "started"})
}

func TestTheHistorySurvivesARestart(t *testing.T) {
	path := newFile(t)
	before := life(t, Options{File: path}, twoPods)
	after := New(Options{File: path})
	if got, want := after.Pods(), before.Pods(); !reflect.DeepEqual(got, want) {
		t.Errorf("after a restart:\n got %+v\nwant %+v", got, want)
	}
	if got, want := shown(after.Node()), shown(before.Node()); got != want {
		t.Errorf("node: got %s, want %s", got, want)
	}
	if after.Seq() <= before.Seq() {
		t.Errorf("sequence numbers: got %d after %d", after.Seq(), before.Seq())
	}
	for e := range after.Watch(t.Context(), 1) {
		if !e.Reset && e.Seq == 0 {
			t.Errorf("got %+v", e)
		}
		break
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestAWatchResumesAcrossAnOrderlyRestart(t *testing.T) {
	path := newFile(t)
	before := life(t, Options{File: path}, twoPods)
	since := before.Seq()
	after := life(t, Options{File: path}, func(s *Store) {
		s.Add(ref("web"), Record{Kind: KindHook, To: "failed"})
	})
	for e := range after.Watch(t.Context(), since) {
		if e.Reset || e.Record.Kind != KindHook {
			t.Errorf("got %+v, want what came after the restart", e)
		}
		break
	}
}

// The first change after a restart is one from the API's status, which may be behind.
func TestARestartRepeatsNothing(t *testing.T) {
	path := newFile(t)
	life(t, Options{File: path}, func(s *Store) {
		r := report(s, "web")
		r.set(started("web", true))
	})
	after := life(t, Options{File: path}, func(s *Store) {
		r := report(s, "web") // its first change is from Pending
		r.set(started("web", true))
		r.accepted()
	})
	pod, _ := after.Pod("shop", "web")
	seen := map[string]bool{}
	for _, r := range pod.Records {
		about := fmt.Sprint(r.Kind, r.Subject, r.Container)
		if seen[about] {
			t.Errorf("%s is there twice:\n%s", about, shown(pod.Records))
		}
		seen[about] = true
		if r.Accepted == nil {
			t.Errorf("%s is not accepted, though the status was after the restart", about)
		}
	}
}

func TestEveryCutOfTheFileKeepsWhatIsBeforeIt(t *testing.T) {
	path := newFile(t)
	whole := life(t, Options{File: path}, twoPods)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	most := total(whole)
	last := 0
	for n := 0; n <= len(data); n++ {
		s := New(Options{})
		s.begin(s.read(bytes.NewReader(data[:n])), time.Now())
		got := total(s)
		if got < last || got > most {
			t.Fatalf("cut at %d: got %d records of pods, had %d with less, the whole has %d", n, got, last, most)
		}
		last = got
		if n < len(data) && len(s.Node()) == 0 {
			t.Fatalf("cut at %d: the node does not say that something is missing", n)
		}
	}
	if last != most {
		t.Errorf("the whole file: got %d records, want %d", last, most)
	}
}

// total counts the records of pods.
func total(s *Store) int {
	n := 0
	for _, pod := range s.Pods() {
		n += len(pod.Records)
	}
	return n
}

func TestADamagedLineCostsItself(t *testing.T) {
	path := newFile(t)
	whole := life(t, Options{File: path}, twoPods)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	for i := 1; i < len(lines)-1; i++ {
		if bytes.Contains(lines[i], []byte(`"op":"pod"`)) || bytes.Contains(lines[i], []byte(`"op":"end"`)) {
			continue // without it, the records of the pod are not read
		}
		damaged := bytes.Clone(data)
		damaged[len(bytes.Join(lines[:i], nil))+20] ^= 0x40
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		s := New(Options{File: path})
		if got := total(s); got < total(whole)-1 {
			t.Errorf("line %d damaged: got %d records, had %d:\n%s", i+1, got, total(whole), lines[i])
		}
		if got := shown(s.Node()); !strings.Contains(got, "1 lines of the file of the history are damaged") {
			t.Errorf("line %d damaged: the node says %s", i+1, got)
		}
	}
}

// testdata has a history of each version that is read, written by the code of its time: a version that is added needs a file,
// and a file is never written again.
func TestFileOfEachVersion_IsRead(t *testing.T) {
	for version := 1; version <= fileVersion; version++ {
		data, err := os.ReadFile(fmt.Sprintf("testdata/version-%d.history", version))
		if err != nil {
			t.Fatal(err)
		}
		path := newFile(t)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		s := New(Options{File: path})
		pod, _ := s.Pod("shop", "web")
		for _, want := range []string{"Ready", "Probe readiness web", "passed"} {
			if got := shown(pod.Records); !strings.Contains(got, want) {
				t.Errorf("version %d: got no %q in\n%s", version, want, got)
			}
		}
		if got := shown(s.Node()); !strings.Contains(got, "started") || strings.Contains(got, "damaged") {
			t.Errorf("version %d: the node says %s", version, got)
		}
	}
}

func TestAFileOfANewerVersionIsKept(t *testing.T) {
	path := newFile(t)
	newer := []byte("statusd history 2\nwhatever\n")
	if err := os.WriteFile(path, newer, 0o600); err != nil {
		t.Fatal(err)
	}
	s := life(t, Options{File: path}, twoPods)
	if kept, err := os.ReadFile(path + ".newer"); err != nil || !bytes.Equal(kept, newer) {
		t.Errorf("kept: %q, %v", kept, err)
	}
	if got := shown(s.Node()); !strings.Contains(got, "newer") {
		t.Errorf("the node says %s", got)
	}
	if got := New(Options{File: path}); total(got) != total(s) {
		t.Errorf("got %d records after a restart, want %d", total(got), total(s))
	}
}

func TestAFileThatIsNoHistoryIsReplaced(t *testing.T) {
	path := newFile(t)
	for _, content := range []string{"", "\n", "no history", strings.Repeat("x", maxLine+10), "statusd history x\n", "statusd history 1"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		s := life(t, Options{File: path}, twoPods)
		if got := shown(s.Node()); !strings.Contains(got, "damaged") {
			t.Errorf("%.20q: the node says %s", content, got)
		}
		if got := New(Options{File: path}); total(got) != total(s) {
			t.Errorf("%.20q: got %d records after a restart, want %d", content, total(got), total(s))
		}
	}
}

func TestALineThatIsTooLongIsSkipped(t *testing.T) {
	path := newFile(t)
	whole := life(t, Options{File: path}, twoPods)
	data, _ := os.ReadFile(path)
	first, rest, _ := bytes.Cut(data, []byte("\n"))
	long := fmt.Sprintf("%s\n%s\n%s", first, strings.Repeat("y", 3*maxLine), rest)
	if err := os.WriteFile(path, []byte(long), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := New(Options{File: path}); total(got) != total(whole) {
		t.Errorf("got %d records, want %d", total(got), total(whole))
	}
}

// faulty is a file of a disk that is full after so many bytes.
type faulty struct {
	file
	left *atomic.Int64
}

func (f faulty) Write(data []byte) (int, error) {
	if left := int(f.left.Load()); left < len(data) {
		n, _ := f.file.Write(data[:left])
		f.left.Store(0)
		return n, syscall.ENOSPC
	}
	f.left.Add(-int64(len(data)))
	return f.file.Write(data)
}

func TestAFullDiskStopsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := newFile(t)
		var log bytes.Buffer
		s := New(Options{File: path, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		var left atomic.Int64
		left.Store(600)
		s.create = func(path string) (file, error) {
			f, err := createFile(path)
			return faulty{f, &left}, err
		}
		run(t, s, func() {
			for i := range 100 {
				report(s, fmt.Sprint("pod", i)).set(started("x", true))
				time.Sleep(time.Second)
			}
			if got := shown(s.Node()); strings.Count(got, "→ not written") != 1 || !strings.Contains(got, "no space left") {
				t.Errorf("the node says %s", got)
			}
			left.Store(1 << 20)
			time.Sleep(time.Minute)
			if got := shown(s.Node()); !strings.Contains(got, "not written → written") {
				t.Errorf("the node says after there is room: %s", got)
			}
		})
		if strings.Count(log.String(), "level=WARN") != 1 {
			t.Errorf("log: %s", log.String())
		}
		if got := New(Options{File: path}); total(got) != total(s) {
			t.Errorf("after a restart: got %d records, want %d", total(got), total(s))
		}
		if _, err := os.Stat(path + ".tmp"); err == nil {
			t.Error("a temporary file is left")
		}
	})
}

func TestADirectoryThatIsNotThereStopsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "history")
	s := life(t, Options{File: path}, twoPods)
	if total(s) == 0 || !strings.Contains(shown(s.Node()), "→ not written") {
		t.Errorf("got %d records; the node says %s", total(s), shown(s.Node()))
	}
}

func TestAFileThatCannotBeReadStopsNothing(t *testing.T) {
	path := t.TempDir() // a directory
	s := New(Options{File: path})
	if !strings.Contains(shown(s.Node()), "cannot be read") {
		t.Errorf("the node says %s", shown(s.Node()))
	}
}

func TestTheFileIsCompacted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := newFile(t)
		const limit = 32 << 10
		var largest int64
		s := life(t, Options{File: path, FileSize: limit, PerPod: 20}, func(s *Store) {
			r := report(s, "web")
			for range 1000 {
				r.flap(1)
				r.accepted()
				time.Sleep(100 * time.Millisecond)
				if info, err := os.Stat(path); err == nil {
					largest = max(largest, info.Size())
				}
			}
		})
		if largest == 0 || largest > 2*limit {
			t.Errorf("the file grew to %d bytes, want at most about %d", largest, limit)
		}
		if got := New(Options{File: path, PerPod: 20}); !reflect.DeepEqual(got.Pods(), s.Pods()) {
			t.Errorf("after a restart:\n%swant:\n%s", shown(got.Pods()[0].Records), shown(s.Pods()[0].Records))
		}
	})
}

func TestClockSteps(t *testing.T) {
	path := newFile(t)
	future := time.Now().Add(48 * time.Hour)
	before := life(t, Options{File: path}, func(s *Store) {
		report(s, "web").set(&v1.PodStatus{Phase: v1.PodRunning})
		s.Removed("web", future) // the clock was two days ahead
	})
	after := New(Options{File: path})
	if after.Seq() <= before.Seq() {
		t.Errorf("sequence numbers: got %d after %d", after.Seq(), before.Seq())
	}
	pod, ok := after.Pod("shop", "web")
	if !ok || pod.Gone == nil || pod.Gone.After(time.Now()) {
		t.Errorf("a pod that is gone in the future: got %v, %v; it would stay for two days", pod.Gone, ok)
	}
	s := New(Options{})
	s.seq = maxSeq - 1 // a clock far ahead
	s.Add(ref("web"), Record{Kind: KindHook, To: "x"})
	if s.Seq() < maxSeq-1 {
		t.Error("the numbers went back")
	}
}

// What a killed process has not written may be what the watch was to get next.
func TestAWatchIsResetAfterACrash(t *testing.T) {
	path, left := newFile(t), newFile(t)
	var since uint64
	life(t, Options{File: path}, func(s *Store) {
		twoPods(s)
		w := &writer{store: s, path: left} // what is on the disk when the process is killed
		w.flush(time.Now())
		w.close()
		since = s.Seq()
		s.Add(ref("web"), Record{Kind: KindHook, To: "failed"})
	})
	after := New(Options{File: left})
	for e := range after.Watch(t.Context(), since) {
		if !e.Reset {
			t.Errorf("got %+v, want a reset", e)
		}
		break
	}
	if got := shown(after.Node()); !strings.Contains(got, "was killed") {
		t.Errorf("the node says %s", got)
	}
}
