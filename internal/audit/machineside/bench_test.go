package machineside

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/statusd/statusd/internal/hostproc"
)

// BenchmarkLook is what one look costs beside 100 pods with three volumes, two containers and 600 processes.
func BenchmarkLook(b *testing.B) {
	root := b.TempDir()
	write := func(path, content string) {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	write("proc/stat", "btime 1700000000\n")
	write("proc/2/comm", "kthreadd\n")
	write("sys/fs/cgroup/cgroup.controllers", "pids")
	for i := range 600 {
		name := map[bool]string{true: "kubelet"}[i == 300]
		write(fmt.Sprintf("proc/%d/comm", 100+i), name+"\n")
		write(fmt.Sprintf("proc/%d/stat", 100+i), fmt.Sprintf("%d (%s) S%s 5%s\n", 100+i, name, strings.Repeat(" 0", 18), strings.Repeat(" 0", 30)))
	}
	var mounts strings.Builder
	for i := range 100 {
		uid := fmt.Sprintf("%032x", i)
		for v := range 3 {
			write(fmt.Sprintf("var/lib/kubelet/pods/%s/volumes/kubernetes.io~empty-dir/v%d/file", uid, v), "x")
			fmt.Fprintf(&mounts, "%d 1 0:1 / /var/lib/kubelet/pods/%s/volumes/kubernetes.io~projected/p%d rw - tmpfs tmpfs rw\n", i, uid, v)
		}
		for c := range 2 {
			write(fmt.Sprintf("sys/fs/cgroup/kubepods/burstable/pod%s/c%d/cgroup.procs", uid, c), "1\n2\n")
		}
	}
	write("proc/1/mountinfo", mounts.String())
	o := Options{Node: "n1", HostRoot: root}
	o.setDefaults()
	r, err := read(o, hostproc.Process{}, time.Now())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if r, err = read(o, r.process, time.Now()); err != nil || len(r.facts.PodDirs) != 100 || len(r.facts.Cgroups) != 100 || r.facts.Process == nil {
			b.Fatal(err, len(r.facts.PodDirs), len(r.facts.Cgroups), r.facts.Process)
		}
	}
}
