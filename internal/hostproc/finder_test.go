package hostproc

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// host is a host made of files.
type host struct {
	t    *testing.T
	root string
}

func newHost(t *testing.T) host {
	h := host{t, t.TempDir()}
	h.write("/proc/stat", "cpu  1 2 3 4 5 6 7 8 9 10\nintr 5 0 1\nbtime 1700000000\n")
	return h
}

func (h host) write(path, content string) {
	h.t.Helper()
	path = filepath.Join(h.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// process adds a process that started a number of ticks after boot.
func (h host) process(pid int, name string, state byte, started int) {
	h.t.Helper()
	h.write(fmt.Sprintf("/proc/%d/comm", pid), name+"\n")
	h.write(fmt.Sprintf("/proc/%d/stat", pid), fmt.Sprintf("%d (%s) %c%s %d%s\n", pid, name, state, strings.Repeat(" 0", 18), started, strings.Repeat(" 0", 30)))
}

func (h host) find(f Finder) Process {
	h.t.Helper()
	f.Root = h.root
	p, err := f.Find(Process{})
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

func TestFind_TheOldestThatLives(t *testing.T) {
	h := newHost(t)
	h.process(10, "kubelet", 'Z', 100)
	if p := h.find(Finder{Name: "kubelet"}); p.PID != 10 || !p.Ended() {
		t.Errorf("one that has ended: got %+v", p)
	}
	h.process(300, "kubelet", 'S', 30000)
	h.process(400, "kubelet", 'T', 20000)
	h.process(500, "kubelet", 'S', 20000)
	h.process(20, "kubelet) T (", 'S', 100)
	p := h.find(Finder{Name: "kubelet"})
	if p.PID != 400 || !p.Stopped() || p.SinceBoot != 200*time.Second {
		t.Errorf("got %+v, want the oldest that lives", p)
	}
	boot, err := Boot(filepath.Join(h.root, "proc"))
	if want := time.Unix(1700000200, 0); err != nil || !p.Started(boot).Equal(want) {
		t.Errorf("started at %v (%v), want %v", p.Started(boot), err, want)
	}
	if p := h.find(Finder{Name: "containerd"}); p.Exists() {
		t.Errorf("got %+v, want none", p)
	}
}

func TestFind_LongNames(t *testing.T) {
	h := newHost(t)
	h.process(10, "rke2-kubelet-ag", 'S', 100)
	if p := h.find(Finder{Name: "rke2-kubelet-agent"}); p.PID != 10 {
		t.Errorf("got %+v: the kernel keeps 15 bytes of a name", p)
	}
}

func TestFind_PIDFile(t *testing.T) {
	h := newHost(t)
	h.process(10, "hyperkube", 'S', 100)
	if err := os.Symlink("/run", filepath.Join(h.root, "var-run")); err != nil {
		t.Fatal(err)
	}
	f := Finder{PIDFile: "/var-run/kubelet.pid", Name: "kubelet"}
	if p := h.find(f); p.Exists() {
		t.Errorf("without a file: got %+v", p)
	}
	h.write("/run/kubelet.pid", "10\n")
	if p := h.find(f); p.PID != 10 {
		t.Errorf("got %+v, want the process of the file below the host's root", p)
	}
	h.write("/run/kubelet.pid", "11\n")
	if p := h.find(f); p.Exists() {
		t.Errorf("a process that is gone: got %+v", p)
	}
	f.Root = h.root
	for _, content := range []string{"", "kubelet", "-10"} {
		h.write("/run/kubelet.pid", content)
		if p, err := f.Find(Process{}); err == nil {
			t.Errorf("a file that contains %q: got %+v and no error", content, p)
		}
	}
}

func TestOfHost(t *testing.T) {
	h := newHost(t)
	if OfHost(filepath.Join(h.root, "proc")) {
		t.Error("processes without the kernel's are those of a host")
	}
	h.process(2, "kthreadd", 'S', 0)
	if !OfHost(filepath.Join(h.root, "proc")) {
		t.Error("the kernel's process is not seen")
	}
}
