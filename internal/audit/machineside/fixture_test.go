package machineside

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/audit"
	"github.com/statusd/statusd/internal/hostproc"
)

// UIDs of pods: one of the API, one of a static pod.
const (
	apiUID    = "0f8fad5b-d9cb-469f-a165-70867728950e"
	staticUID = "7b9b0a1c6a1e4a5f8d3c2b1a09f8e7d6"
)

// tree is a host made of files, seen from a container that has its root mounted.
type tree struct {
	t    *testing.T
	root string
}

func newTree(t *testing.T) tree {
	f := tree{t, t.TempDir()}
	f.write("/proc/stat", "cpu 1 2 3\nbtime 1700000000\n")
	f.write("/proc/1/mountinfo", "")
	f.write("/proc/2/comm", "kthreadd\n")
	f.write("/sys/fs/cgroup/cgroup.controllers", "cpu memory pids\n")
	f.dir("/var/lib/kubelet/pods")
	return f
}

func (f tree) dir(path string) {
	f.t.Helper()
	if err := os.MkdirAll(filepath.Join(f.root, path), 0o755); err != nil {
		f.t.Fatal(err)
	}
}

func (f tree) write(path, content string) {
	f.t.Helper()
	f.dir(filepath.Dir(path))
	if err := os.WriteFile(filepath.Join(f.root, path), []byte(content), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

func (f tree) link(target, path string) {
	f.t.Helper()
	f.dir(filepath.Dir(path))
	if err := os.Symlink(target, filepath.Join(f.root, path)); err != nil {
		f.t.Fatal(err)
	}
}

// process adds one to the table of processes.
func (f tree) process(pid, name, state string, started string) {
	f.t.Helper()
	f.write("/proc/"+pid+"/comm", name+"\n")
	f.write("/proc/"+pid+"/stat", pid+" ("+name+") "+state+strings.Repeat(" 0", 18)+" "+started+strings.Repeat(" 0", 30)+"\n")
}

func (f tree) options() Options { return Options{Node: "N1", HostRoot: f.root} }

// read looks once.
func (f tree) read(change ...func(*Options)) (audit.Machine, error) {
	o := f.options()
	for _, c := range change {
		c(&o)
	}
	o.setDefaults()
	r, err := read(o, hostproc.Process{}, time.Unix(1700000500, 0))
	return r.facts, err
}

// must looks once and fails the test if that fails.
func (f tree) must(change ...func(*Options)) audit.Machine {
	f.t.Helper()
	facts, err := f.read(change...)
	if err != nil {
		f.t.Fatal(err)
	}
	return facts
}

func podDir(uid types.UID) string { return "/var/lib/kubelet/pods/" + string(uid) }
