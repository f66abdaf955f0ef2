package logs

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// mailbox takes problems and lets a test wait for them.
type mailbox struct {
	mu       sync.Mutex
	problems []Problem
	changed  chan struct{}
}

func newMailbox() *mailbox { return &mailbox{changed: make(chan struct{}, 1)} }

func (b *mailbox) put(p Problem) {
	b.mu.Lock()
	b.problems = append(b.problems, p)
	b.mu.Unlock()
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// await waits until the problems are as wanted.
func (b *mailbox) await(done func([]Problem) bool) []Problem {
	for {
		b.mu.Lock()
		list := slices.Clone(b.problems)
		b.mu.Unlock()
		if done(list) {
			return list
		}
		<-b.changed
	}
}

func counted(reason string, n int) func([]Problem) bool {
	return func(list []Problem) bool {
		sum := 0
		for _, p := range list {
			if p.Reason == reason {
				sum += p.Count
			}
		}
		return sum >= n
	}
}

// begun waits until the monitor has begun to read a log.
func begun(m *Monitor) {
	for {
		m.mu.Lock()
		n := len(m.state.Positions)
		m.mu.Unlock()
		if n > 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// run runs a monitor until the function has returned.
func run(t *testing.T, o Options, use func(m *Monitor, box *mailbox)) *mailbox {
	t.Helper()
	box := newMailbox()
	o.Problem = box.put
	o.interval, o.pause = 50*time.Millisecond, time.Millisecond
	o.patience = cmp.Or(o.patience, time.Hour) // a slow disk is none that hangs
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { m.Run(ctx) })
	use(m, box)
	cancel()
	running.Wait()
	return box
}

// Across restarts each line counts once: none is lost, none is reported again.
func TestRestartsLoseNoLineAndRepeatNone(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "kubelet.log")
	appendTo(t, log, "")
	options := Options{Files: map[string]Origin{log: KubeletLog}, StateFile: filepath.Join(dir, "state"), Share: 1}
	total := 0
	var ids []string
	for round := range 5 {
		wanted := 3
		if round == 0 {
			run(t, options, func(m *Monitor, box *mailbox) {
				begun(m)
				appendTo(t, log, "PLEG is not healthy\n") // what was there before the first start does not count
				box.await(counted("PLEGUnhealthy", 1))
			})
			total++
			continue
		}
		for i := range wanted {
			appendTo(t, log, fmt.Sprintf("PLEG is not healthy %d %d\nnothing\n", round, i))
		}
		if round == 3 {
			rename(t, log, log+".1")
			appendTo(t, log, "nothing\n")
		}
		box := run(t, options, func(m *Monitor, box *mailbox) { box.await(counted("PLEGUnhealthy", wanted)) })
		for _, p := range box.problems {
			total += p.Count
			ids = append(ids, p.ID)
		}
	}
	if total != 13 {
		t.Errorf("%d lines were reported, want 13", total)
	}
	slices.Sort(ids)
	if len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Errorf("the same line was reported twice: %q", ids)
	}
	m, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Report().Counts["PLEGUnhealthy"]; got != 13 {
		t.Errorf("the count after all restarts is %d", got)
	}
}

// What was found and not given away before a crash is given after it, also if the log says nothing more.
func TestWhatWasNotGivenAwayIsGivenAfterACrash(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "kubelet.log")
	appendTo(t, log, "")
	o := Options{StateFile: filepath.Join(dir, "state"), Files: map[string]Origin{log: KubeletLog}}
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	m.take(log, batch{lines: []line{{origin: Kernel, at: time.Unix(1, 0), text: "EXT4-fs error", id: "1"}}, position: positionOf(t, log, 0)})
	m.write(m.encode())
	run(t, o, func(again *Monitor, box *mailbox) {
		if p := box.await(counted("Ext4Error", 1))[0]; p.ID != "kernel 1 Ext4Error" {
			t.Errorf("it comes as %+v", p)
		}
	})
	again, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if len(again.state.Outbox) != 0 {
		t.Errorf("it is still there: %+v", again.state.Outbox)
	}
}

// What is found while something else is given away at the end is given, too.
func TestAtTheEndEverythingIsGivenAway(t *testing.T) {
	var given []string
	ctx, cancel := context.WithCancel(t.Context())
	var m *Monitor
	find := func(id string) {
		m.take("x", batch{lines: []line{{origin: Kernel, at: time.Unix(1, 0), text: "EXT4-fs error", id: id}}})
	}
	m, err := New(Options{Problem: func(p Problem) {
		if given = append(given, p.ID); len(given) == 1 {
			find("2") // the same reason, which may come again after 10 seconds only
			cancel()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	m.sources["x"] = &Source{}
	find("1")
	m.give(ctx)
	if want := []string{"kernel 1 Ext4Error", "kernel 1 Ext4Error+"}; !slices.Equal(given, want) {
		t.Errorf("given are %q, want %q", given, want)
	}
}

// A state that cannot be read or written stops nothing.
func TestAStateThatIsBroken(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	appendTo(t, log, "")
	broken := filepath.Join(dir, "broken")
	appendTo(t, broken, "{")
	for _, file := range []string{broken, filepath.Join(dir, "none", "state")} {
		run(t, Options{Files: map[string]Origin{log: RuntimeLog}, StateFile: file, Share: 1}, func(m *Monitor, box *mailbox) {
			begun(m)
			appendTo(t, log, "panic: x\n")
			box.await(counted("RuntimePanic", 1))
		})
	}
}

// A condition lasts until a line clears it or the machine is started again, also across restarts.
func TestConditions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	now := time.Date(2026, 11, 15, 10, 0, 0, 0, time.UTC)
	o := Options{StateFile: file, bootID: "boot-1", now: func() time.Time { return now }}
	say := func(o Options, at time.Time, texts ...string) *Monitor {
		m, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		m.sources["x"] = &Source{}
		for i, text := range texts {
			origin := Kernel
			if strings.HasPrefix(text, "Started") {
				origin = ServiceState
			}
			m.take("x", batch{lines: []line{{origin: origin, at: at, text: text, id: fmt.Sprint(i)}}, position: fmt.Sprint(i)})
		}
		if data := m.encode(); data != nil {
			m.write(data)
		}
		return m
	}
	conditions := func(m *Monitor) string {
		var list []string
		for _, c := range m.Report().Conditions {
			list = append(list, fmt.Sprintf("%s=%v(%s)", c.Type, c.True, c.Reason))
		}
		return strings.Join(list, " ")
	}
	steps := []struct {
		boot  string
		after time.Duration
		texts []string
		want  string
	}{
		{"boot-1", 0, nil, ""},
		{"boot-1", 0, []string{"EXT4-fs (vda): Remounting filesystem read-only"}, "ReadonlyFilesystem=true(FilesystemIsReadOnly)"},
		{"boot-1", time.Hour, nil, "ReadonlyFilesystem=true(FilesystemIsReadOnly)"},
		{"boot-1", 0, []string{"EXT4-fs (vda): re-mounted 12 r/w."}, "ReadonlyFilesystem=false(FilesystemIsReadOnly)"},
		{"boot-1", 0, []string{"INFO: task docker:1 blocked for more than 120 seconds."}, "KernelDeadlock=true(DockerHung) ReadonlyFilesystem=false(FilesystemIsReadOnly)"},
		{"boot-2", 0, nil, ""},
		{"boot-2", 0, slices.Repeat([]string{"Started kubelet.service."}, 4), "FrequentKubeletRestart=false(KubeletStart)"},
		{"boot-2", 0, []string{"Started kubelet.service."}, "FrequentKubeletRestart=true(KubeletStart)"},
		{"boot-2", 19 * time.Minute, nil, "FrequentKubeletRestart=true(KubeletStart)"},
		{"boot-2", time.Minute, nil, "FrequentKubeletRestart=false(KubeletStart)"},
	}
	for i, step := range steps {
		now = now.Add(step.after)
		o.bootID = step.boot
		if got := conditions(say(o, now, step.texts...)); got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
}

// The same problem comes at once and then at intervals, counted; another pod's comes at once.
func TestProblemsAreCountedTogether(t *testing.T) {
	now := time.Unix(1000, 0)
	s, err := loadState("", "boot")
	if err != nil {
		t.Fatal(err)
	}
	problem := func(id, reason, uid string) Problem {
		p := Problem{ID: id, Reason: reason, Count: 1, At: now, First: now}
		if uid != "" {
			p.Victim = &Victim{UID: "u"}
		}
		return p
	}
	give := func(want string) {
		t.Helper()
		ready := s.ready(now, 10*time.Second, false)
		var got []string
		for _, p := range ready {
			got = append(got, fmt.Sprintf("%s×%d", p.ID, p.Count))
		}
		s.given(ready)
		s.forget(now, 10*time.Second)
		if strings.Join(got, " ") != want {
			t.Errorf("given %q, want %q", got, want)
		}
	}
	s.post(problem("a1", "IOError", ""))
	s.post(problem("a2", "IOError", ""))
	s.post(problem("b1", "OOMKilling", "u"))
	give("a1×2 b1×1")
	s.post(problem("a3", "IOError", ""))
	s.post(problem("c1", "OOMKilling", ""))
	give("c1×1")
	now = now.Add(10 * time.Second)
	s.post(problem("a4", "IOError", ""))
	give("a3×2")
	s.post(problem("a5", "IOError", ""))
	now = now.Add(-time.Hour) // a clock that was set back keeps nothing
	give("a5×1")
}

// 100 MB of other lines with a few that count: these are found, and memory stays bounded.
func TestAFloodOfLines(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "kubelet.log")
	appendTo(t, log, "")
	filler := bytes.Repeat([]byte(`I1115 10:00:00.000001 1 kubelet.go:2500] "SyncLoop (probe)" probe="readiness" status="ready" pod="default/web-7d4b9c5d8-abcde"`+"\n"), 8192)
	options := Options{Files: map[string]Origin{log: KubeletLog}, StateFile: filepath.Join(dir, "state"), Share: 1, Registerer: prometheus.NewRegistry()}
	written := 0
	run(t, options, func(m *Monitor, box *mailbox) {
		begun(m)
		for i := 0; written < 100<<20; i++ {
			appendTo(t, log, fmt.Sprintf("PLEG is not healthy: %d\n", i)+string(filler))
			written += len(filler)
		}
		rounds := written / len(filler)
		box.await(counted("PLEGUnhealthy", rounds))
		if got := m.Report().Counts["PLEGUnhealthy"]; got != int64(rounds) {
			t.Errorf("%d of %d were counted", got, rounds)
		}
		if n := testutil.ToFloat64(m.metrics.problems.WithLabelValues("kubelet", "PLEGUnhealthy")); n != float64(rounds) {
			t.Errorf("the metric has %v of %d", n, rounds)
		}
	})
}

// A log that cannot be followed says so rather than keeping the monitor from ending.
func TestAKernelLogThatIsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kmsg")
	appendTo(t, path, "6,1,1,-;text\n")
	changed := make(chan struct{}, 1)
	run(t, Options{Kmsg: path, Changed: func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}}, func(m *Monitor, _ *mailbox) {
		for !strings.Contains(m.Report().Sources[0].Err, "cannot be followed") {
			<-changed
		}
	})
}

func FuzzKmsg(f *testing.F) {
	f.Add([]byte("6,339,5140900,-;NET: Registered protocol family 10\n SUBSYSTEM=net\n"))
	f.Add([]byte("4,-1,x;;"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := parseKmsg(data); err == nil && strings.Contains(r.text, "\n") {
			t.Errorf("a record of two lines: %q", r.text)
		}
	})
}
