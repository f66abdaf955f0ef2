//go:build real

package machineside

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/hostproc"
)

// look looks at this machine until what it sees is as wanted: the end of a process and its place in
// a control group are not seen at once.
func look(t *testing.T, o Options, what string, wanted func(audit.Machine) bool) audit.Machine {
	t.Helper()
	o.setDefaults()
	for {
		r, err := read(o, hostproc.Process{}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		facts := r.facts
		if wanted(facts) {
			return facts
		}
		if t.Context().Err() != nil {
			t.Fatalf("%s: never seen, last %+v", what, facts)
		}
	}
}

// The pods, mounts, groups and processes of this very machine.
func TestThisMachine(t *testing.T) {
	uid := types.UID(fmt.Sprintf("%x", random(t)))
	dir := t.TempDir()
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	pod := filepath.Join(root, "pods", string(uid))
	volume := filepath.Join(pod, "volumes", "kubernetes.io~empty-dir", "a b")
	if err := os.MkdirAll(volume, 0o755); err != nil {
		t.Fatal(err)
	}
	o := Options{Node: "n1", KubeletRoot: dir, PIDFile: filepath.Join(dir, "pid")}

	trees, err := hierarchies(&host{root: "/", left: 1000}, DefaultCgroupRoot)
	if err != nil {
		t.Logf("no control groups here, so that they are not looked at: %v", err)
		o.CgroupRoot = filepath.Join(dir, "cgroup")
		if err := os.MkdirAll(filepath.Join(o.CgroupRoot, "memory"), 0o755); err != nil {
			t.Fatal(err)
		}
	}

	// The process: running, stopped, running, gone.
	kubelet := exec.Command("sleep", "infinity")
	if err := kubelet.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	end := func() {
		if !ended {
			ended = true
			_ = kubelet.Process.Kill()
			_ = kubelet.Wait()
		}
	}
	t.Cleanup(end)
	if err := os.WriteFile(o.PIDFile, []byte(strconv.Itoa(kubelet.Process.Pid)), 0o600); err != nil {
		t.Fatal(err)
	}
	facts := look(t, o, "a process", func(m audit.Machine) bool { return m.Process != nil && !m.Process.Stopped })
	if facts.Process.PID != kubelet.Process.Pid || facts.Process.Started.Before(facts.Boot) || facts.Process.Started.After(time.Now().Add(time.Second)) {
		t.Errorf("got %+v, boot %v", facts.Process, facts.Boot)
	}
	for _, c := range []struct {
		signal  syscall.Signal
		stopped bool
	}{{syscall.SIGSTOP, true}, {syscall.SIGCONT, false}} {
		if err := kubelet.Process.Signal(c.signal); err != nil {
			t.Fatal(err)
		}
		look(t, o, c.signal.String(), func(m audit.Machine) bool { return m.Process != nil && m.Process.Stopped == c.stopped })
	}

	// The volume: empty, with a file, mounted.
	if got := facts.PodDirs[uid]; got.Path != pod || len(got.Volumes)+len(got.Mounts) != 0 {
		t.Errorf("got %+v, want an empty volume", got)
	}
	if err := os.WriteFile(filepath.Join(volume, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	look(t, o, "a volume with a file", func(m audit.Machine) bool { return slices.Equal(m.PodDirs[uid].Volumes, []string{volume}) })
	if err := syscall.Mount("tmpfs", volume, "tmpfs", 0, "size=4k"); err != nil {
		t.Logf("only root can mount; run as root to see the mounts: %v", err)
	} else {
		look(t, o, "a mount", func(m audit.Machine) bool {
			return slices.Equal(m.PodDirs[uid].Mounts, []string{volume}) && len(m.PodDirs[uid].Volumes) == 0
		})
		if err := syscall.Unmount(volume, 0); err != nil {
			t.Fatal(err)
		}
		look(t, o, "no mount", func(m audit.Machine) bool { return len(m.PodDirs[uid].Mounts) == 0 })
	}

	if trees == nil {
		end()
	} else {
		thisCgroup(t, o, trees[0], uid, kubelet.Process.Pid, end)
	}
	look(t, o, "the end of the process", func(m audit.Machine) bool { return m.Process == nil && m.ProcessKnown })
}

// thisCgroup puts the process into a group of a pod, ends it, and removes the group.
func thisCgroup(t *testing.T, o Options, tree string, uid types.UID, pid int, end func()) {
	own := filepath.Join(tree, "statusd-machineside-"+string(uid))
	group := filepath.Join(own, "kubepods", "burstable", "pod"+string(uid))
	t.Cleanup(func() {
		for dir := group; len(dir) >= len(own); dir = filepath.Dir(dir) {
			_ = os.Remove(dir)
		}
	})
	if err := os.MkdirAll(filepath.Join(group, "container"), 0o755); err != nil {
		t.Logf("only root can make control groups; run as root to see them: %v", err)
		end()
		return
	}
	container := filepath.Join(group, "container")
	look(t, o, "an empty group", func(m audit.Machine) bool { return m.Cgroups[uid].Path == group && m.Cgroups[uid].Processes == 0 })
	if err := os.WriteFile(filepath.Join(container, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
		t.Fatal(err)
	}
	look(t, o, "a group with a process", func(m audit.Machine) bool { return m.Cgroups[uid].Processes == 1 })
	end()
	look(t, o, "a group without processes", func(m audit.Machine) bool { return m.Cgroups[uid].Processes == 0 })
	for os.Remove(container) != nil { // busy until the kernel has finished with the process
	}
	if err := os.Remove(group); err != nil {
		t.Fatal(err)
	}
	look(t, o, "no group", func(m audit.Machine) bool { return m.Cgroups[uid].Path == "" })
}

func random(t *testing.T) []byte {
	t.Helper()
	data := make([]byte, 16)
	if _, err := io.ReadFull(rand.Reader, data); err != nil {
		t.Fatal(err)
	}
	return data
}
