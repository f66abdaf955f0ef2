//go:build real

package cri

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/podvolume"
	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/test/campaign"
	"github.com/statusd/statusd/test/stock"
	"github.com/statusd/statusd/test/testlog"
)

// insideVariable names the directory of a containerd in whose namespaces this test binary runs: sub-paths and volumes in memory are mounts, which
// containerd must see.
const insideVariable = "STATUSD_TEST_CRI_DIR"

// onMachine runs the test once more on a machine of its own with a containerd, and there calls what is to be tested with a runtime.
func onMachine(t *testing.T, test func(t *testing.T, m *machine)) {
	t.Helper()
	if dir := os.Getenv(insideVariable); dir != "" {
		containerd := &stock.Containerd{Dir: dir}
		rt, end := open(t, containerd, filepath.Join(dir, t.Name()), testlog.New(t))
		defer end()
		test(t, &machine{rt, t})
		return
	}
	containerd := stock.StartContainerd(t)
	loadToolbox(t, containerd)
	t.Setenv(insideVariable, containerd.Dir)
	inside, err := containerd.Launch("inside", os.Args[0], "-test.v", "-test.run", "^"+t.Name()+"$")
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-inside.Exited():
	case <-t.Context().Done():
	}
	output, err := os.ReadFile(inside.Log())
	if status, _ := inside.Ended(); err != nil || status.ExitStatus() != 0 {
		t.Fatalf("exit code %d, %v:\n%s", status.ExitStatus(), err, output)
	}
}

// machine runs pods one after the other.
type machine struct {
	*Runtime
	t *testing.T
}

// shell is a container that runs a script. What the script writes to /dev/termination-log is its message.
func shell(name, script string, mounts ...v1.VolumeMount) v1.Container {
	return v1.Container{
		Name: name, Image: toolbox, ImagePullPolicy: v1.PullNever, Command: []string{"/bin/sh", "-c", script},
		TerminationMessagePath: "/dev/termination-log", VolumeMounts: mounts,
	}
}

// thief is a pod as the level restricted of Pod Security demands it.
func thief(uid types.UID, volumes []v1.Volume, containers ...v1.Container) *v1.Pod {
	user, yes, no := int64(1999), true, false
	for i := range containers {
		containers[i].SecurityContext = &v1.SecurityContext{
			RunAsUser: &user, RunAsNonRoot: &yes, AllowPrivilegeEscalation: &no, Capabilities: &v1.Capabilities{Drop: []v1.Capability{"ALL"}},
		}
	}
	pod := testPod(uid)
	pod.Spec.HostNetwork, pod.Spec.Volumes, pod.Spec.Containers = true, volumes, containers
	return pod
}

func (m *machine) start(pod *v1.Pod) {
	m.t.Helper()
	if err := m.StartPod(m.t.Context(), pod); err != nil {
		m.t.Fatal(err)
	}
}

// run starts a container of the pod and returns how it ended.
func (m *machine) run(pod *v1.Pod, name string, attempt int) (runtime.Container, error) {
	m.t.Helper()
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name != name {
			continue
		}
		if _, err := m.StartContainer(m.t.Context(), pod, &pod.Spec.Containers[i], attempt); err != nil {
			return runtime.Container{}, err
		}
	}
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Minute)
	defer cancel()
	var ended runtime.Container
	err := campaign.Await(ctx, 20*time.Millisecond, func() error {
		found, err := m.Pod(ctx, pod.UID)
		if err != nil {
			return err
		}
		for _, c := range found.Containers {
			if c.Name == name && c.Attempt == attempt && c.State == runtime.Exited {
				ended = c
				return nil
			}
		}
		return fmt.Errorf("container %s has not ended", name)
	})
	return ended, err
}

func (m *machine) remove(pod *v1.Pod) {
	m.t.Helper()
	found, err := m.Pod(m.t.Context(), pod.UID)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, c := range found.Containers {
		if err := m.StopContainer(m.t.Context(), c.ID, 0); err != nil {
			m.t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Minute)
	defer cancel()
	if err := campaign.Await(ctx, 20*time.Millisecond, func() error { return m.RemovePod(ctx, pod.UID) }); err != nil {
		m.t.Fatal(err)
	}
}

const secret = "hunter2"

// victim is a pod with a file that only it may read, and its path on the node.
func (m *machine) victim() (*v1.Pod, string) {
	pod := testPod("victim")
	pod.Annotations = map[string]string{"password": secret}
	pod.Spec.HostNetwork = true
	pod.Spec.Volumes = []v1.Volume{
		{Name: "creds", VolumeSource: v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{Items: []v1.DownwardAPIVolumeFile{
			{Path: "password", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.annotations['password']"}},
		}}}},
		{Name: "cache", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
	}
	pod.Spec.Containers = []v1.Container{shell("main", "cat /creds/password >/cache/copy; sleep 1000", v1.VolumeMount{Name: "creds", MountPath: "/creds"}, v1.VolumeMount{Name: "cache", MountPath: "/cache"})}
	m.start(pod)
	if _, err := m.StartContainer(m.t.Context(), pod, &pod.Spec.Containers[0], 0); err != nil {
		m.t.Fatal(err)
	}
	return pod, filepath.Join(m.options.Dir, "pods", "victim")
}

var scratch = []v1.Volume{{Name: "scratch", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}

// A link that a container puts into a volume leads no sub-path out of that volume.
func TestHostilePod_LinkInAVolumeLeadsNowhere(t *testing.T) {
	onMachine(t, func(t *testing.T, m *machine) {
		victim, dir := m.victim()
		for i, target := range []string{filepath.Join(dir, "volumes/creds"), "../../../victim/volumes/cache", "/etc", "/proc/self/root"} {
			pod := thief(types.UID(fmt.Sprintf("thief-%d", i)), scratch,
				shell("first", "busybox ln -s "+target+" /scratch/evil", v1.VolumeMount{Name: "scratch", MountPath: "/scratch"}),
				shell("second", "busybox ls -la /evil /evil/..data >/dev/termination-log", v1.VolumeMount{Name: "scratch", MountPath: "/evil", SubPath: "evil"}))
			m.start(pod)
			if c, err := m.run(pod, "first", 0); err != nil || c.ExitCode != 0 {
				t.Fatalf("the link was not made: %+v, %v", c, err)
			}
			if c, err := m.run(pod, "second", 0); err == nil || !strings.Contains(err.Error(), "failed to prepare subPath") {
				t.Errorf("link to %s: got %+v, %v; want a sub-path that is refused", target, c, err)
			}
			m.remove(pod)
		}
		m.remove(victim)
	})
}

// A directory that is exchanged for a link in a loop, as fast as the kernel does it, while sub-paths of it are mounted, shows nothing of another pod.
func TestHostilePod_SwappedSubPathLeadsNowhere(t *testing.T) {
	onMachine(t, func(t *testing.T, m *machine) {
		victim, volume := filepath.Join(m.options.Dir, "victim"), filepath.Join(m.options.Dir, "volume")
		for _, dir := range []string{victim, filepath.Join(volume, "a")} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(os.WriteFile(filepath.Join(victim, "password"), nil, 0o644), os.Symlink(victim, filepath.Join(volume, "b"))); err != nil {
			t.Fatal(err)
		}
		var racing sync.WaitGroup
		defer racing.Wait()
		racer, stop := context.WithCancel(t.Context())
		defer stop()
		racing.Go(func() {
			for racer.Err() == nil {
				_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(volume, "a"), unix.AT_FDCWD, filepath.Join(volume, "b"), unix.RENAME_EXCHANGE)
			}
		})
		p := &pod{dir: podDir(filepath.Join(m.options.Dir, "thief")), manifest: testPod("thief")}
		mounted := 0
		for range 3000 {
			target, err := p.bindSubPath(volume, "a", &v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}, "main", 0)
			if err != nil {
				continue
			}
			mounted++
			if _, err := os.Lstat(filepath.Join(target, "password")); err == nil {
				t.Fatalf("mount %d is of another pod", mounted)
			}
		}
		if mounted == 0 {
			t.Error("no sub-path was mounted")
		}
		if err := removeTree(string(p.dir)); err != nil {
			t.Error(err)
		}
	})
}

// A pod sees neither processes nor files of another one, and cannot write to its termination message.
func TestHostilePod_GetsNothingOfAnotherPod(t *testing.T) {
	onMachine(t, func(t *testing.T, m *machine) {
		victim, dir := m.victim()
		pod := thief("thief", scratch, shell("main", fmt.Sprintf(`{
			for p in /proc/[0-9]*; do busybox tr '\0' ' ' <$p/cmdline; done | busybox grep -q 'sleep 100[0]' && echo processes
			busybox find / -name password 2>/dev/null | busybox grep -q . && echo files
			busybox test -e %[1]s && echo directory
			for n in '' a b c d e; do echo spoofed >%[1]s/containers/main/0/termination-log && echo message; done 2>/dev/null
			busybox mount -t tmpfs none /scratch 2>/dev/null && echo mounted
			busybox mknod /scratch/disk b 8 0 2>/dev/null && echo device
			echo 1 >/proc/sys/kernel/panic && echo sysctl
			} >/dev/termination-log 2>/dev/null; exit 0`, dir), v1.VolumeMount{Name: "scratch", MountPath: "/scratch"}))
		m.start(pod)
		c, err := m.run(pod, "main", 0)
		if err != nil || c.ExitCode != 0 || c.Message != "" {
			t.Errorf("got %q, %+v, %v; want nothing of the machine and of other pods", c.Message, c, err)
		}
		m.remove(pod)
		if data, err := os.ReadFile(filepath.Join(dir, "containers/main/0/termination-log")); err != nil || len(data) > 0 {
			t.Errorf("the termination message of the victim: %q, %v", data, err)
		}
		m.remove(victim)
	})
}

// What a pod mounts over a path of its container leaves nothing on the machine.
func TestHostilePod_MountPathsMakeNothingOnTheMachine(t *testing.T) {
	onMachine(t, func(t *testing.T, m *machine) {
		pod := thief("thief", []v1.Volume{{Name: "text", VolumeSource: v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{Items: []v1.DownwardAPIVolumeFile{
			{Path: "name", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}},
		}}}}}, shell("main", "cat /run/nologin >/dev/termination-log",
			v1.VolumeMount{Name: "text", MountPath: "/run/nologin", SubPath: "name"}, v1.VolumeMount{Name: "text", MountPath: "/run/systemd/system/evil.service", SubPath: "name"}))
		m.start(pod)
		if c, err := m.run(pod, "main", 0); err != nil || c.Message != "web" {
			t.Errorf("got %+v, %v; want the mounted file", c, err)
		}
		m.remove(pod)
		for _, path := range []string{"/run/nologin", "/run/systemd/system"} {
			if _, err := os.Lstat(path); err == nil {
				t.Errorf("%s is left on the machine", path)
			}
		}
	})
}

// What an administrator has mounted read-only stays read-only for a pod that asks to write, also below its volume, and so does /proc/sys for root.
func TestHostilePod_ReadOnlyMountsStayReadOnly(t *testing.T) {
	onMachine(t, func(t *testing.T, m *machine) {
		top := filepath.Join(m.options.Dir, "kept")
		below := filepath.Join(top, "below")
		for _, dir := range []string{top, below} {
			if err := os.MkdirAll(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			if output, err := exec.Command("mount", "-t", "tmpfs", "tmpfs", dir).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, output)
			}
			if dir == top {
				if err := os.Mkdir(below, 0o777); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, dir := range []string{top, below} {
			if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
				t.Fatal(err)
			}
		}
		pod := testPod("writer")
		pod.Spec.HostNetwork = true
		pod.Spec.Volumes = []v1.Volume{{Name: "kept", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: top}}}}
		script := "{ echo x >/kept/file && echo top; echo x >/kept/below/file && echo below; echo 1 >/proc/sys/kernel/panic && echo sysctl; } >/dev/termination-log 2>/dev/null; exit 0"
		yes := true
		pod.Spec.Containers = []v1.Container{
			shell("plain", script, v1.VolumeMount{Name: "kept", MountPath: "/kept"}),
			shell("protected", script, v1.VolumeMount{Name: "kept", MountPath: "/kept"}),
		}
		pod.Spec.Containers[1].SecurityContext = &v1.SecurityContext{ReadOnlyRootFilesystem: &yes}
		m.start(pod)
		p, err := m.place(pod.UID)
		if err != nil {
			t.Fatal(err)
		}
		// This runc keeps them read-only by itself, newer ones do not.
		if asked, err := p.mount(&pod.Spec.Containers[0].VolumeMounts[0], "plain", 0, nil); err != nil || !asked.Readonly {
			t.Errorf("asked for the mount %+v, %v; want a read-only one", asked, err)
		}
		for _, name := range []string{"plain", "protected"} {
			if c, err := m.run(pod, name, 0); err != nil || c.ExitCode != 0 || c.Message != "" {
				t.Errorf("container %s wrote to %q: %+v, %v", name, c.Message, c, err)
			}
		}
		m.remove(pod)
	})
}

// Secrets and what is made in memory never get to the disk, also after a reboot, which takes their mounts away.
func TestVolumesInMemory(t *testing.T) {
	onMachine(t, func(t *testing.T, m *machine) {
		pod := testPod("reader")
		pod.Spec.HostNetwork = true
		pod.Spec.Volumes = []v1.Volume{
			{Name: "self", VolumeSource: v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{Items: []v1.DownwardAPIVolumeFile{{Path: "name", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}}},
			{Name: "memory", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}}},
		}
		pod.Spec.Containers = []v1.Container{shell("main", "cat /self/name >/dev/termination-log", v1.VolumeMount{Name: "self", MountPath: "/self"}, v1.VolumeMount{Name: "memory", MountPath: "/memory"})}
		m.start(pod)
		p, err := m.place(pod.UID)
		if err != nil {
			t.Fatal(err)
		}
		for attempt := range 2 {
			if c, err := m.run(pod, "main", attempt); err != nil || c.Message != "web" {
				t.Errorf("attempt %d: got %+v, %v; want the name of the pod", attempt, c, err)
			}
			for _, name := range []string{"self", "memory"} {
				if !podvolume.IsMountPoint(p.dir.volume(name)) {
					t.Errorf("attempt %d: volume %s is on disk", attempt, name)
				}
				if err := unmountAll(p.dir.volume(name)); err != nil {
					t.Fatal(err)
				}
			}
			if err := m.stopSandbox(t.Context(), p.sandbox.id); err != nil {
				t.Fatal(err)
			}
			m.mu.Lock()
			p.sandbox.ready = false
			m.mu.Unlock()
		}
		m.remove(pod)
	})
}

// A pod with a user namespace is root in its container and no one on the machine, and writes to its volumes, if the container runtime has user namespaces. That of Debian
// has none: the pod waits.
func TestRealUserNamespaces(t *testing.T) {
	onMachine(t, func(t *testing.T, m *machine) {
		for _, plugin := range []string{"loopback", "none"} { // a pod with the network of the machine can have no users of its own
			script := "#!/bin/sh\ncat >/dev/null; echo '{\"cniVersion\": \"0.4.0\", \"ips\": [{\"version\": \"4\", \"address\": \"192.0.2.9/24\"}]}'\n"
			dir := filepath.Join(os.Getenv(insideVariable), "cni", "bin")
			if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, plugin), []byte(script), 0o755)); err != nil {
				t.Fatal(err)
			}
		}
		pod := testPod("mapped")
		pod.Spec.HostUsers = new(bool)
		pod.Spec.Volumes = scratch
		pod.Spec.Containers = []v1.Container{shell("main", "echo x >/scratch/file; busybox stat -c %u /scratch/file >/dev/termination-log; cat /proc/self/uid_map >>/dev/termination-log", v1.VolumeMount{Name: "scratch", MountPath: "/scratch"})}
		err := m.StartPod(t.Context(), pod)
		if !m.cri.features("").GetUserNamespaces() {
			if err == nil || !strings.Contains(err.Error(), "runtime does not support user namespaces") {
				t.Errorf("got %v, want a pod that waits", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		c, err := m.run(pod, "main", 0)
		if got, want := strings.Fields(c.Message), []string{"0", "0", fmt.Sprint(firstUser), fmt.Sprint(usersPerPod)}; err != nil || !slices.Equal(got, want) {
			t.Errorf("got %v, %+v, %v; want %v", got, c, err, want)
		}
		m.remove(pod)
	})
}

// What only its control group names, as after the loss of the container runtime's state, ends with the pod.
func TestRemovePod_EndsWhatIsLeftInItsGroups(t *testing.T) {
	containerd := stock.StartContainerd(t)
	loadToolbox(t, containerd)
	rt, end := open(t, containerd, t.TempDir(), testlog.New(t))
	defer end()
	m := &machine{rt, t}
	pod := testPod("leaky")
	pod.Spec.HostNetwork = true
	m.start(pod)
	stray := exec.Command("sleep", "1000")
	if err := stray.Start(); err != nil {
		t.Fatal(err)
	}
	var reaping sync.WaitGroup
	defer reaping.Wait()
	reaping.Go(func() { _ = stray.Wait() }) // a process that has ended is in its group until its parent has noticed
	defer stray.Process.Kill()
	joined := 0
	for _, dir := range rt.groups.everywhere(rt.groups.pathOf(pod)) {
		group := filepath.Join(dir, "stray")
		if err := os.Mkdir(group, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), fmt.Append(nil, stray.Process.Pid), 0); err == nil {
			joined++ // one of cpuset takes no process before it has processors
		}
	}
	if err := rt.RemovePod(t.Context(), pod.UID); err != nil {
		t.Fatal(err)
	}
	if left := rt.groups.everywhere(rt.groups.pathOf(pod)); joined == 0 || !gone(left) {
		t.Errorf("a process was put into %d groups; left are %v", joined, left)
	}
}

func gone(dirs []string) bool {
	for _, dir := range dirs {
		if _, err := os.Stat(dir); err == nil {
			return false
		}
	}
	return true
}
