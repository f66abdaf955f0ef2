package machineside

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestDirectoriesOfPods(t *testing.T) {
	f := newTree(t)
	f.dir(podDir(apiUID) + "/volumes/kubernetes.io~empty-dir/empty")
	f.write(podDir(apiUID)+"/volumes/kubernetes.io~empty-dir/full/file", "x")
	f.dir(podDir(apiUID) + "/volumes/kubernetes.io~projected/token")
	f.dir(podDir(staticUID))
	f.dir("/var/lib/kubelet/pods/lost+found")
	f.write("/var/lib/kubelet/pods/"+strings.Repeat("a", 32), "a file is no directory of a pod")
	token := podDir(apiUID) + "/volumes/kubernetes.io~projected/token"
	odd := podDir(apiUID) + "/volume-subpaths/a b/c\\d/0"
	f.write("/proc/1/mountinfo", "22 1 0:20 / / rw - ext4 /dev/sda rw\n"+
		"99 22 0:44 / "+token+" rw,relatime shared:1 - tmpfs tmpfs rw\n"+
		"99 22 0:44 / "+token+" rw,relatime shared:1 - tmpfs tmpfs rw\n"+
		"98 22 0:45 / "+podDir(apiUID)+`/volume-subpaths/a\040b/c\134d/0 rw - ext4 /dev/sdb rw`+"\n"+
		"97 22 0:45 / /var/lib/kubelet/podsother/"+apiUID+"/x rw - ext4 /dev/sdb rw\n"+
		"short line\n")

	facts := f.must()
	if len(facts.PodDirs) != 2 {
		t.Fatalf("got %d directories, want those of two pods: %+v", len(facts.PodDirs), facts.PodDirs)
	}
	got := facts.PodDirs[apiUID]
	if got.Path != podDir(apiUID) || got.Changed.IsZero() || got.At.IsZero() {
		t.Errorf("got %+v", got)
	}
	if want := []string{odd, token}; !slices.Equal(got.Mounts, want) {
		t.Errorf("got mounts %q, want %q", got.Mounts, want)
	}
	if want := []string{podDir(apiUID) + "/volumes/kubernetes.io~empty-dir/full"}; !slices.Equal(got.Volumes, want) {
		t.Errorf("got volumes %q, want %q", got.Volumes, want)
	}
}

// What a pod puts into its directory must not lead elsewhere.
func TestLinksInDirectoriesOfPodsAreNotFollowed(t *testing.T) {
	f := newTree(t)
	f.write("/secret/kubernetes.io~empty-dir/x/file", "x")
	f.dir(podDir(apiUID))
	f.link("/secret", podDir(apiUID)+"/volumes")
	f.write(podDir(staticUID)+"/volumes/plugin/real/file", "x")
	f.link("/secret", podDir(staticUID)+"/volumes/plugin/linked")
	f.link("/secret", podDir(staticUID)+"/volumes/linked")
	f.link(podDir(staticUID), "/var/lib/kubelet/pods/"+strings.Repeat("b", 32))

	facts := f.must()
	if len(facts.PodDirs) != 2 || len(facts.PodDirs[apiUID].Volumes) != 0 {
		t.Errorf("got %+v, want two pods, and no volume behind a link", facts.PodDirs)
	}
	if want := []string{podDir(staticUID) + "/volumes/plugin/real"}; !slices.Equal(facts.PodDirs[staticUID].Volumes, want) {
		t.Errorf("got volumes %q, want %q", facts.PodDirs[staticUID].Volumes, want)
	}
}

// The kubelet's root may be a link, of the host's root and not of the container's.
func TestTheKubeletsRootMayBeALink(t *testing.T) {
	f := newTree(t)
	if err := os.RemoveAll(filepath.Join(f.root, "var/lib/kubelet")); err != nil {
		t.Fatal(err)
	}
	f.link("../../data/./kubelet", "/var/lib/kubelet")
	f.link("/disk", "/data")
	f.dir("/disk/kubelet/pods/" + apiUID)
	mount := "/disk/kubelet/pods/" + apiUID + "/volumes/p/v"
	f.write("/proc/1/mountinfo", "99 22 0:44 / "+mount+" rw - tmpfs tmpfs rw\n")
	if got := f.must().PodDirs[apiUID]; !slices.Equal(got.Mounts, []string{mount}) {
		t.Errorf("got %+v, want the mount at %s", got, mount)
	}

	f.link("loop2", "/loop1")
	f.link("loop1", "/loop2")
	if _, err := f.read(func(o *Options) { o.KubeletRoot = "/loop1" }); err == nil || !strings.Contains(err.Error(), "links") {
		t.Errorf("a loop of links: got %v", err)
	}
}

func TestADirectoryThatCannotBeReadIsNotEmpty(t *testing.T) {
	f := newTree(t)
	f.dir(podDir(apiUID))
	f.dir(podDir(staticUID))
	if _, err := f.read(func(o *Options) { o.MaxEntries = 1 }); !errors.Is(err, errTooMany) {
		t.Errorf("more entries than allowed: got %v", err)
	}
	for _, file := range []string{"/proc/1/mountinfo", "/proc/stat", "/sys/fs/cgroup/cgroup.controllers"} {
		f := newTree(t)
		if err := os.Remove(filepath.Join(f.root, file)); err != nil {
			t.Fatal(err)
		}
		if _, err := f.read(); err == nil {
			t.Errorf("without %s: no error", file)
		}
	}
	f = newTree(t)
	if err := os.RemoveAll(filepath.Join(f.root, "var/lib/kubelet")); err != nil {
		t.Fatal(err)
	}
	if facts := f.must(); len(facts.PodDirs) != 0 {
		t.Errorf("a kubelet that never ran: got %+v", facts.PodDirs)
	}
}

func TestTenThousandMounts(t *testing.T) {
	f := newTree(t)
	var table strings.Builder
	for i := range 10_000 {
		uid := fmt.Sprintf("%032x", i%100)
		if i < 100 {
			f.dir("/var/lib/kubelet/pods/" + uid)
		}
		fmt.Fprintf(&table, "%d 22 0:44 / %s/volumes/p/v%d rw - tmpfs tmpfs rw\n", i, podDir("")+uid, i)
	}
	f.write("/proc/1/mountinfo", table.String())
	facts := f.must()
	for uid, dir := range facts.PodDirs {
		if len(dir.Mounts) != 100 {
			t.Fatalf("pod %s has %d mounts, want 100", uid, len(dir.Mounts))
		}
	}
	if len(facts.PodDirs) != 100 {
		t.Errorf("got %d pods, want 100", len(facts.PodDirs))
	}
}

func TestControlGroups(t *testing.T) {
	systemd := strings.ReplaceAll(apiUID, "-", "_")
	for name, c := range map[string]struct{ root, api, static string }{
		"v2 cgroupfs":         {"/sys/fs/cgroup", "kubepods/burstable/pod" + apiUID, "kubepods/pod" + staticUID},
		"v2 systemd":          {"/sys/fs/cgroup", "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + systemd + ".slice", "kubepods.slice/kubepods-pod" + staticUID + ".slice"},
		"v2 below a root":     {"/sys/fs/cgroup", "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod" + systemd + ".slice", "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" + staticUID + ".slice"},
		"v1 cgroupfs":         {"/sys/fs/cgroup/pids", "kubepods/burstable/pod" + apiUID, "kubepods/pod" + staticUID},
		"v1 without pids":     {"/sys/fs/cgroup/cpu,cpuacct", "kubepods/besteffort/pod" + apiUID, "kubepods/pod" + staticUID},
		"hybrid with systemd": {"/sys/fs/cgroup/systemd", "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + systemd + ".slice", "kubepods.slice/kubepods-pod" + staticUID + ".slice"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newTree(t)
			if !strings.HasPrefix(name, "v2") {
				if err := os.Remove(filepath.Join(f.root, "sys/fs/cgroup/cgroup.controllers")); err != nil {
					t.Fatal(err)
				}
				f.dir("/sys/fs/cgroup/memory/system.slice/docker.service")
				f.dir("/sys/fs/cgroup/unified/init.scope")
			}
			f.write(filepath.Join(c.root, c.api, "cgroup.procs"), "")
			f.write(filepath.Join(c.root, c.api, "cri-containerd-1.scope", "cgroup.procs"), "10\n11\n")
			f.write(filepath.Join(c.root, c.api, "cri-containerd-1.scope", "below", "cgroup.procs"), "0\n")
			f.dir(filepath.Join(c.root, c.static))
			f.dir(filepath.Join(c.root, filepath.Dir(c.static), "podcast"))
			f.dir(filepath.Join(c.root, filepath.Dir(c.static), "pod"+strings.Repeat("_", 33)))
			facts := f.must()
			if len(facts.Cgroups) != 2 {
				t.Fatalf("got %+v, want the groups of two pods", facts.Cgroups)
			}
			if got := facts.Cgroups[apiUID]; got.Processes != 3 || got.Path != filepath.Join(c.root, c.api) {
				t.Errorf("got %+v, want three processes at %s", got, c.api)
			}
			if got := facts.Cgroups[staticUID]; got.Processes != 0 {
				t.Errorf("got %+v, want no process", got)
			}
		})
	}
}

func TestTheKubeletsProcess(t *testing.T) {
	boot := time.Unix(1700000000, 0)
	f := newTree(t)
	if facts := f.must(); facts.Process != nil || !facts.ProcessKnown || !facts.Boot.Equal(boot) {
		t.Errorf("no kubelet: got %+v, known %t, boot %v", facts.Process, facts.ProcessKnown, facts.Boot)
	}
	f.process("300", "kubelet", "S", "30000")
	f.process("200", "kubelet) T (", "S", "100")
	f.process("400", "kubelet", "S", "20000")
	f.process("100", "kubelet", "Z", "10000")
	f.dir("/proc/500") // it has ended since the table was read
	got := f.must().Process
	if got == nil || got.PID != 400 || got.Stopped || !got.Started.Equal(boot.Add(200*time.Second)) {
		t.Errorf("got %+v, want the oldest one that lives, started 200 s after boot", got)
	}
	f.process("400", "kubelet", "T", "20000")
	if got := f.must().Process; got == nil || !got.Stopped {
		t.Errorf("got %+v, want it stopped", got)
	}
	f.process("400", "kubelet", "S", "20000")
	f.write("/proc/400/cgroup", "0::/system.slice/kubelet.service\n")
	f.write("/sys/fs/cgroup/system.slice/kubelet.service/cgroup.events", "populated 1\nfrozen 1\n")
	if got := f.must().Process; got == nil || got.Stopped || !got.Frozen {
		t.Errorf("got %+v, want it frozen", got)
	}
	f.write("/run/kubelet.pid", "200\n")
	named := func(o *Options) { o.PIDFile = "/run/kubelet.pid" }
	if got := f.must(named).Process; got == nil || got.PID != 200 {
		t.Errorf("got %+v, want the process of the file", got)
	}
	f.write("/run/kubelet.pid", "9999\n")
	if facts := f.must(named); facts.Process != nil || !facts.ProcessKnown {
		t.Errorf("got %+v, want none", facts.Process)
	}
	f.write("/run/kubelet.pid", "starting")
	if _, err := f.read(named); err == nil {
		t.Error("a file without a process ID: no error")
	}
}

// A container that sees its own processes only must not say that there is no kubelet.
func TestProcessesOfAContainerSayNothing(t *testing.T) {
	f := newTree(t)
	f.write("/proc/2/comm", "statusd\n")
	if facts := f.must(); facts.Process != nil || facts.ProcessKnown {
		t.Errorf("got %+v, known %t, want unknown", facts.Process, facts.ProcessKnown)
	}
}

func TestManifests(t *testing.T) {
	f := newTree(t)
	if facts := f.must(); facts.ManifestsKnown {
		t.Error("a directory that does not exist: known")
	}
	f.dir("/etc/kubernetes/manifests/sub")
	f.write("/etc/kubernetes/manifests/.hidden", "not: a pod")
	if facts := f.must(); !facts.ManifestsKnown || len(facts.Manifests) != 0 {
		t.Errorf("an empty directory: got %+v, known %t", facts.Manifests, facts.ManifestsKnown)
	}
	f.write("/etc/kubernetes/manifests/b.yaml", "# comment\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: b, namespace: ns}\nspec: {unknownField: 1}\n---\nkind: Pod\nmetadata: {name: c}\n")
	f.write("/data/a.json", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`)
	f.link("/data/a.json", "/etc/kubernetes/manifests/a.json")
	facts := f.must()
	var names []string
	for _, m := range facts.Manifests {
		names = append(names, m.Namespace+"/"+m.Name+" "+filepath.Base(m.Path))
	}
	if want := []string{"default/a-n1 a.json", "ns/b-n1 b.yaml", "default/c-n1 b.yaml"}; !slices.Equal(names, want) || !facts.ManifestsKnown {
		t.Errorf("got %q, known %t, want %q", names, facts.ManifestsKnown, want)
	}
	if facts := f.must(func(o *Options) { o.Manifests = "/data/a.json" }); len(facts.Manifests) != 1 || !facts.ManifestsKnown {
		t.Errorf("a file: got %+v, known %t", facts.Manifests, facts.ManifestsKnown)
	}
	for name, content := range map[string]string{"half": "apiVersion: v1\nkind: Pod\nmetad", "service": "kind: Service\nmetadata: {name: x}", "empty": "", "binary": "\x00\xff"} {
		f.write("/etc/kubernetes/manifests/z", content)
		if facts := f.must(); facts.ManifestsKnown || len(facts.Manifests) != 3 {
			t.Errorf("%s: got %+v, known %t, want the readable ones, and unknown", name, facts.Manifests, facts.ManifestsKnown)
		}
	}
	if err := os.Remove(filepath.Join(f.root, "etc/kubernetes/manifests/z")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(f.root, "etc/kubernetes/manifests/pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if facts := f.must(); facts.ManifestsKnown {
		t.Error("a pipe: known, want unknown, and no wait for a writer")
	}
}

func TestMountPoints(t *testing.T) {
	for line, want := range map[string]string{
		`1 2 0:1 / /a\040b rw - x y z`:            "/a b",
		`1 2 0:1 / /a\011\012\134\043 rw - x y z`: "/a\t\n\\#",
		`1 2 0:1 / /a\04 rw - x y z`:              `/a\04`,
		`1 2 0:1 / /a\999 rw - x y z`:             `/a\999`,
		`1 2 0:1 / /a//deleted rw - x y z`:        "/a",
		`1 2 0:1 /`:                               "",
		``:                                        "",
	} {
		if got, _ := mountPoint(line); got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}

func TestSteadyTimes(t *testing.T) {
	f := newTree(t)
	f.process("400", "kubelet", "S", "20000")
	first := f.must()
	f.write("/proc/stat", "btime 1700000001\n")
	second := f.must()
	steady(&first, &second)
	if !second.Boot.Equal(first.Boot) || !reflect.DeepEqual(first.Process, second.Process) {
		t.Errorf("boot %v and %v, process %+v and %+v, want no change by a rounded second", first.Boot, second.Boot, first.Process, second.Process)
	}
	f.write("/proc/stat", "btime 1700000120\n")
	third := f.must()
	steady(&second, &third)
	if third.Boot.Equal(second.Boot) {
		t.Error("the clock was set by two minutes, and the time of boot has not changed")
	}
}

// A file system whose server is gone would block a process that opens it. What is mounted is not opened, so that what is in it
// cannot be said.
func TestAMountIsNotOpened(t *testing.T) {
	f := newTree(t)
	volume := podDir(apiUID) + "/volumes/kubernetes.io~nfs/data"
	f.write(volume+"/file", "x")
	f.write("/proc/1/mountinfo", "99 22 0:44 / "+volume+" rw - nfs server:/data rw\n")
	if got := f.must().PodDirs[apiUID]; len(got.Volumes) != 0 || !slices.Equal(got.Mounts, []string{volume}) {
		t.Errorf("got %+v, want the mount alone", got)
	}
}
