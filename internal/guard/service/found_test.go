package service

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/statusd/statusd/internal/guard"
	"github.com/statusd/statusd/internal/hostproc"
)

func state(t *testing.T, s guard.Service) guard.Process {
	t.Helper()
	p, err := s.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFound_LooksAndTouchesNothing(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	file := filepath.Join(t.TempDir(), "kubelet.pid")
	f := Found{Finder: hostproc.Finder{PIDFile: file}}
	if p := state(t, f); p.Exists || p.Sure {
		t.Errorf("without the file: %+v", p)
	}
	if err := os.WriteFile(file, []byte(strconv.Itoa(cmd.Process.Pid)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if p := state(t, f); !p.Exists || p.PID != cmd.Process.Pid || time.Since(p.Started).Abs() > time.Hour {
		t.Errorf("got %+v, want process %d", p, cmd.Process.Pid)
	}
	for _, err := range []error{f.Start(t.Context()), f.Stop(t.Context()), f.Restart(t.Context())} {
		if !errors.Is(err, ErrOnlyFound) {
			t.Errorf("got %v", err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if p := state(t, f); p.Exists || p.Sure {
		t.Errorf("after its end: %+v", p)
	}
}

// A found process is restarted by the operator's command, whose failure is an error with its output.
func TestFound_RestartCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "restarted")
	f := Found{Command: []string{"touch", file}}
	if err := f.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	f.Command = []string{"sh", "-c", "echo no such service >&2; exit 3"}
	if err := f.Restart(t.Context()); err == nil || !strings.Contains(err.Error(), "no such service") {
		t.Errorf("got %v", err)
	}
}

// tableOf is a table of processes of these names, each of which started a number of seconds after boot.
func tableOf(t *testing.T, processes map[int]struct {
	name    string
	started int
}) string {
	t.Helper()
	proc := t.TempDir()
	files := map[string]string{"stat": fmt.Sprintf("btime %d\n", time.Now().Add(-time.Hour).Unix())}
	for pid, p := range processes {
		files[fmt.Sprintf("%d/comm", pid)] = p.name + "\n"
		files[fmt.Sprintf("%d/stat", pid)] = fmt.Sprintf("%d (%s) T%s %d%s\n", pid, p.name, strings.Repeat(" 0", 18), p.started*100, strings.Repeat(" 0", 30))
	}
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(proc, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(proc, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return proc
}

// A search finds the oldest process of the name, of which the kernel keeps 15 bytes: the process that the audit finds.
func TestFoundByName(t *testing.T) {
	proc := tableOf(t, map[int]struct {
		name    string
		started int
	}{70: {"kubelet", 300}, 77: {"kubelet", 100}, 80: {"kubelet", 200}, 90: {"rke2-kubelet-ag", 50}})
	for name, want := range map[string]int{"kubelet": 77, "rke2-kubelet-agent": 90} {
		p := state(t, Found{Finder: hostproc.Finder{Name: name, Proc: proc}})
		if age := time.Since(p.Started); !p.Exists || p.PID != want || !p.Stopped || age < time.Minute || age > time.Hour {
			t.Errorf("%s: got %+v, want process %d", name, p, want)
		}
	}
	if p := state(t, Found{Finder: hostproc.Finder{Name: "containerd", Proc: proc}}); p.Exists || p.Sure {
		t.Errorf("got %+v", p)
	}
}

// A kubelet whose control group is frozen is left alone, also where no systemd says so.
func TestFound_FrozenByItsControlGroup(t *testing.T) {
	root := t.TempDir()
	proc := tableOf(t, map[int]struct {
		name    string
		started int
	}{70: {"kubelet", 300}})
	group := filepath.Join(root, "sys/fs/cgroup/kubelet")
	if err := os.MkdirAll(group, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{filepath.Join(proc, "70/cgroup"): "0::/kubelet\n", filepath.Join(group, "cgroup.events"): "populated 1\nfrozen 1\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if p := state(t, Found{Finder: hostproc.Finder{Name: "kubelet", Proc: proc, Root: root}}); !p.Frozen {
		t.Errorf("got %+v, want it frozen", p)
	}
	if p := state(t, Found{Finder: hostproc.Finder{Name: "kubelet", Proc: proc, Root: t.TempDir()}}); p.Frozen {
		t.Errorf("got %+v, want it not frozen", p)
	}
}

// A search by name finds another process of the name, not the one that searches: statusd observe looks for statusd.
func TestFoundSkipsItself(t *testing.T) {
	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Found{Finder: hostproc.Finder{Name: strings.TrimSpace(string(comm))}}.State(t.Context())
	if err != nil || p.PID == os.Getpid() {
		t.Errorf("got %+v, %v: a process that looks for its name has found itself", p, err)
	}
}
