//go:build real

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/internal/mounts"
)

func emptyDir(name string, source v1.EmptyDirVolumeSource) v1.Volume {
	return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{EmptyDir: &source}}
}

func hostPath(name, path string) v1.Volume {
	return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: path}}}
}

// What a container writes to its terminationMessagePath is its message, wherever that is, and nothing is made on the machine.
func TestTerminationMessage_IsReadFromItsPath(t *testing.T) {
	h := newHost(t)
	openViewed(t, h)
	own := fmt.Sprintf("/run/statusd-test-%d/message", os.Getpid())
	for i, c := range []struct {
		story, path string
		change      func(*v1.Pod)
	}{
		{"by default", v1.TerminationMessagePathDefault, func(pod *v1.Pod) { container0(pod).TerminationMessagePath = "" }},
		{"as API servers set it", v1.TerminationMessagePathDefault, func(*v1.Pod) {}},
		{"of a user", v1.TerminationMessagePathDefault, func(pod *v1.Pod) { container0(pod).SecurityContext = &v1.SecurityContext{RunAsUser: ptr(int64(77777))} }},
		{"with a read-only root", v1.TerminationMessagePathDefault, func(pod *v1.Pod) {
			container0(pod).SecurityContext = &v1.SecurityContext{ReadOnlyRootFilesystem: ptr(true)}
		}},
		{"of its own", own, func(*v1.Pod) {}},
		{"of its own, with a read-only root", own, func(pod *v1.Pod) {
			container0(pod).SecurityContext = &v1.SecurityContext{ReadOnlyRootFilesystem: ptr(true)}
		}},
		{"in a volume", "/opt/message", func(pod *v1.Pod) {
			pod.Spec.Volumes = []v1.Volume{emptyDir("data", v1.EmptyDirVolumeSource{})}
			container0(pod).VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/opt"}}
		}},
		{"in a volume at /dev", v1.TerminationMessagePathDefault, func(pod *v1.Pod) {
			pod.Spec.Volumes = []v1.Volume{emptyDir("data", v1.EmptyDirVolumeSource{})}
			container0(pod).VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/dev"}}
		}},
	} {
		t.Run(c.story, func(t *testing.T) {
			pod := scriptPod(types.UID(fmt.Sprintf("pod-%d", i)), "echo bye > "+c.path)
			container0(pod).TerminationMessagePath = c.path
			c.change(pod)
			before, _ := os.ReadFile(c.path) // a machine that is a container itself has one
			h.start(t, pod)
			if ended := h.awaitExit(t, pod.UID); ended.ExitCode != 0 || ended.Message != "bye\n" {
				t.Errorf("got %+v", ended)
			}
			if now, err := os.ReadFile(c.path); string(now) != string(before) || (err == nil && before == nil) {
				t.Errorf("%s of the machine is %q now, %v, was %q", c.path, now, err, before)
			}
		})
	}
}

// A directory that is covered for the termination log has what it had: devices, terminals, memory.
func TestTerminationMessage_LeavesTheDevices(t *testing.T) {
	h := newHost(t)
	openViewed(t, h)
	pod := scriptPod("pod", strings.Join([]string{
		`{ echo > /dev/null; } 2> /dev/zero && echo written > ` + h.pipe + ` || echo denied > ` + h.pipe,
		`head -c 8 /dev/zero | wc -c > ` + h.pipe,
		`stat -c '%F %t:%T %a %U' /dev/null > ` + h.pipe,
		`[ -d /dev/pts ] && [ -d /dev/shm ] && echo directories > ` + h.pipe + ` || echo missing > ` + h.pipe,
		`readlink /dev/fd > ` + h.pipe + ` || echo missing > ` + h.pipe,
		`umask > ` + h.pipe,
	}, "\n"))
	container0(pod).SecurityContext = &v1.SecurityContext{RunAsUser: ptr(int64(77777))}
	h.start(t, pod)
	info, err := os.Stat("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	umask, err := exec.Command("sh", "-c", "umask").Output()
	if err != nil {
		t.Fatal(err)
	}
	device := fmt.Sprintf("character special file 1:3 %o root", info.Mode().Perm())
	for _, want := range []string{"written", "8", device, "directories", "/proc/self/fd", strings.TrimSpace(string(umask))} {
		if got := h.hear(t); got != want {
			t.Errorf("heard %q, want %q", got, want)
		}
	}
	h.awaitExit(t, "pod")
}

// Only what a container chooses keeps its programs from gaining privileges: the default path is everyone's.
func TestTerminationMessage_TakesPrivilegesOnlyAtAPathOfItsOwn(t *testing.T) {
	h := newHost(t)
	openViewed(t, h)
	for path, want := range map[string]string{v1.TerminationMessagePathDefault: "NoNewPrivs::0", "/etc/statusd-test": "NoNewPrivs::1"} {
		pod := confinedPod(report + ` > ` + h.pipe + `; echo > ` + h.pipe)
		pod.UID = types.UID(strings.ReplaceAll(want, ":", "-"))
		container0(pod).SecurityContext, container0(pod).TerminationMessagePath = nil, path
		pod.Spec.SecurityContext.SeccompProfile = nil
		h.start(t, pod)
		hasAll(t, path, h.hear(t), want)
		h.awaitExit(t, pod.UID)
	}
}

// A volume of the machine keeps what is made in it, so that the default path is not made there.
func TestTerminationMessage_IsNotMadeInAVolumeOfTheMachine(t *testing.T) {
	h := newHost(t)
	openViewed(t, h)
	place := t.TempDir()
	pod := scriptPod("pod", "[ ! -e /dev/termination-log ] && echo bye > $STATUSD_TERMINATION_LOG")
	pod.Spec.Volumes = []v1.Volume{hostPath("devices", place)}
	container0(pod).VolumeMounts = []v1.VolumeMount{{Name: "devices", MountPath: "/dev"}}
	h.start(t, pod)
	if ended := h.awaitExit(t, "pod"); ended.Message != "bye\n" {
		t.Errorf("got %+v", ended)
	}
	if entries, err := os.ReadDir(place); err != nil || len(entries) > 0 {
		t.Errorf("the volume has %v, %v; want nothing", entries, err)
	}
}

// Who has a resolver or names of its own sees them, and the machine keeps its files.
func TestAPodHasItsOwnNames(t *testing.T) {
	h := newHost(t)
	openViewed(t, h)
	machine := map[string][]byte{}
	for _, name := range []string{"/etc/hosts", "/etc/resolv.conf"} {
		content, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		machine[name] = content
	}
	pod := scriptPod("pod", strings.Join([]string{
		`tail -n 1 /etc/hosts > ` + h.pipe,
		`[ "$(grep -c . /etc/hosts)" -gt 2 ] && echo and the names of the machine > ` + h.pipe,
		`tr '\n' ';' < /etc/resolv.conf > ` + h.pipe,
		`echo > ` + h.pipe,
	}, "\n"))
	pod.Spec.HostAliases = []v1.HostAlias{{IP: "192.0.2.7", Hostnames: []string{"a", "b"}}}
	pod.Spec.DNSPolicy = v1.DNSNone
	pod.Spec.DNSConfig = &v1.PodDNSConfig{Nameservers: []string{"192.0.2.1"}, Searches: []string{"example.com"}, Options: []v1.PodDNSConfigOption{{Name: "ndots", Value: ptr("2")}}}
	h.start(t, pod)
	want := []string{"192.0.2.7\ta\tb", "and the names of the machine", "nameserver 192.0.2.1;search example.com;options ndots:2;"}
	if strings.Count(string(machine["/etc/hosts"]), "\n") == 0 {
		want = slices.Delete(want, 1, 2)
	}
	for _, want := range want {
		if got := h.hear(t); got != want {
			t.Errorf("heard %q, want %q", got, want)
		}
	}
	h.awaitExit(t, "pod")
	for name, before := range machine {
		if now, err := os.ReadFile(name); string(now) != string(before) || (err != nil && before != nil) {
			t.Errorf("%s of the machine is %q now (%v), was %q", name, now, err, before)
		}
	}
}

// A volume in memory is one for all containers of a pod and outlives them and statusd, and nothing of it is left when the pod is
// removed.
func TestAVolumeInMemory(t *testing.T) {
	h := newHost(t)
	openViewed(t, h)
	pod := scriptPod("pod", strings.Join([]string{
		`stat -f -c %T /statusd-test-memory > ` + h.pipe,
		`df --output=size -B 1 /statusd-test-memory | tail -n 1 > ` + h.pipe,
		`cat /statusd-test-memory/file > ` + h.pipe + ` 2> /dev/null || echo nothing > ` + h.pipe,
		`echo something > /statusd-test-memory/file`,
		`echo bye > /dev/termination-log`,
	}, "\n"))
	pod.Spec.SecurityContext = &v1.PodSecurityContext{RunAsUser: ptr(int64(77777)), FSGroup: ptr(int64(88888))}
	pod.Spec.Volumes = []v1.Volume{emptyDir("memory", v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory, SizeLimit: ptr(resource.MustParse("8Mi"))})}
	container0(pod).VolumeMounts = []v1.VolumeMount{{Name: "memory", MountPath: "/statusd-test-memory"}}
	pod.Spec.HostNetwork, pod.Spec.HostPID, pod.Spec.HostIPC = true, true, true
	if h.noMemory != "" { // as on a machine of tests that is a mount namespace itself
		if found := checkWith(h.Runtime, pod); !slices.Contains(found, "spec.volumes[0].emptyDir.medium") {
			t.Errorf("%s, and Check rejects only %v", h.noMemory, found)
		}
		return
	}
	if found := checkWith(h.Runtime, pod); len(found) > 0 {
		t.Errorf("Check rejects %v", found)
	}
	hears := func(what, content string) {
		t.Helper()
		for _, want := range []string{"tmpfs", "8388608", content} {
			if got := strings.TrimSpace(h.hear(t)); got != want {
				t.Errorf("%s: heard %q, want %q", what, got, want)
			}
		}
		h.awaitAllExited(t, "pod")
	}
	id := h.start(t, pod)
	hears("the first container", "nothing")
	dir := h.podDir("pod").volume("memory")
	if info, err := os.Stat(dir); err != nil || info.Mode() != fs.ModeDir|fs.ModeSticky|fs.ModeSetgid|0o777 {
		t.Errorf("the volume is %v, %v", info.Mode(), err)
	}
	usage, err := h.PodUsage(t.Context(), "pod")
	if size := usage.VolumeBytes["memory"]; err != nil || size == 0 || usage.MemoryBytes != size {
		t.Errorf("usage: got %+v, %v; want the volume as memory: all containers have ended", usage, err)
	}
	h.close()
	h.open(t)
	if _, err := h.StartContainer(t.Context(), pod, container0(pod), 1); err != nil {
		t.Fatal(err)
	}
	hears("the second one, after a restart of statusd", "something")

	// A restart of the machine takes the content, and the volume is there again.
	h.close()
	if err := mounts.UnmountBelow(h.dir); err != nil {
		t.Fatal(err)
	}
	h.reboot(t, "pod", id)
	h.open(t)
	if err := h.StartPod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if _, err := h.StartContainer(t.Context(), pod, container0(pod), 2); err != nil {
		t.Fatal(err)
	}
	hears("the third one, after a restart of the machine", "nothing")
	if err := h.RemovePod(t.Context(), "pod"); err != nil {
		t.Fatal(err)
	}
	if left, err := mounts.Below(h.dir); err != nil || len(left) > 0 {
		t.Errorf("still mounted: %v, %v", left, err)
	}
}
