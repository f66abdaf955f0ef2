//go:build real

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// openViewed opens a runtime whose containers have views. What is rejected where containers have none is in
// TestWithoutViewsNothingIsReadOnly.
func openViewed(t *testing.T, h *host) {
	t.Helper()
	h.open(t)
	openTheWay(t, h.dir)
	if !h.views {
		t.Fatal("this test needs root and mount namespaces")
	}
}

// A volume is where the container wants it, whether there is such a place on the machine or not;
// and nothing of that is seen outside.
func TestVolumesAreAtTheirMountPaths(t *testing.T) {
	h := newHost(t)
	h.options.Objects = settings("hello")
	openViewed(t, h)
	place := t.TempDir()
	openTheWay(t, place)
	made := fmt.Sprintf("/var/run/statusd-test-%d/a", os.Getpid())
	pod := contentPod("pod", strings.Join([]string{
		`cd ` + place,
		`echo $(cat ` + made + `/greeting) > ` + h.pipe,
		`touch rw/file && echo written > ` + h.pipe,
		`touch ro/file 2> /dev/null || echo denied > ` + h.pipe,
		`touch $STATUSD_VOLUME_HOST/file 2> /dev/null || echo denied > ` + h.pipe,
		`touch ` + made + `/file 2> /dev/null || echo denied > ` + h.pipe,
		`exec sleep 1000000`,
	}, "\n"))
	container0(pod).SecurityContext = nil // root, whom no mode keeps out
	for _, name := range []string{"rw", "ro", "host"} {
		if err := os.Mkdir(filepath.Join(place, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes,
		v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
		v1.Volume{Name: "host", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: filepath.Join(place, "host")}}})
	container0(pod).VolumeMounts = []v1.VolumeMount{
		{Name: "data", MountPath: filepath.Join(place, "rw")},
		{Name: "host", MountPath: filepath.Join(place, "ro"), ReadOnly: true},
		{Name: "settings", MountPath: made},
	}
	id := h.start(t, pod)
	for _, want := range []string{"hello", "written", "denied", "denied", "denied"} {
		if got := h.hear(t); got != want {
			t.Errorf("heard %q, want %q", got, want)
		}
	}
	result, err := h.Exec(t.Context(), id, []string{"ls", filepath.Join(place, "rw"), made})
	if err != nil || result.ExitCode != 0 || !strings.Contains(string(result.Output), "file") || !strings.Contains(string(result.Output), "greeting") {
		t.Errorf("a command in the container sees %s, %v", result.Output, err)
	}
	if entries, err := os.ReadDir(filepath.Join(place, "rw")); err != nil || len(entries) > 0 {
		t.Errorf("outside, the mount path holds %v, %v; want nothing", entries, err)
	}
	if _, err := os.Lstat(filepath.Dir(made)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("outside, %s was made: %v", made, err)
	}
}

// A container of another user that chooses what is at /etc must not become root by it.
func TestAViewGivesNoPrivileges(t *testing.T) {
	h := newHost(t)
	openViewed(t, h)
	pod := confinedPod(report + ` > ` + h.pipe + `; echo > ` + h.pipe)
	container0(pod).SecurityContext = nil
	pod.Spec.SecurityContext.SeccompProfile = nil
	pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
	container0(pod).VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/etc"}}
	h.start(t, pod)
	hasAll(t, "a user with its own /etc", h.hear(t), "NoNewPrivs::1")
}

func TestAReadOnlyRootKeepsAllButVolumes(t *testing.T) {
	h := newHost(t)
	openViewed(t, h)
	outside := t.TempDir()
	pod := scriptPod("pod", strings.Join([]string{
		`touch ` + outside + `/file 2> /dev/null || echo denied > ` + h.pipe,
		`touch $STATUSD_MOUNT_DATA/file /opt/file && echo written > ` + h.pipe,
		`echo bye > $STATUSD_TERMINATION_LOG`,
	}, "\n"))
	container0(pod).SecurityContext = &v1.SecurityContext{ReadOnlyRootFilesystem: ptr(true)}
	pod.Spec.Volumes = []v1.Volume{
		{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
		{Name: "opt", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
	}
	container0(pod).VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: "opt", MountPath: "/opt"}}
	h.start(t, pod)
	for _, want := range []string{"denied", "written"} {
		if got := h.hear(t); got != want {
			t.Errorf("heard %q, want %q", got, want)
		}
	}
	if c := h.awaitExit(t, "pod"); c.ExitCode != 0 || c.Message != "bye\n" {
		t.Errorf("got %+v", c)
	}
}

func TestAContainerHasTheHostNameOfItsPod(t *testing.T) {
	h := newHost(t)
	openViewed(t, h)
	before, _ := os.Hostname()
	pod := scriptPod("pod", `echo $(uname -n) $HOSTNAME > `+h.pipe)
	pod.Spec.Hostname = "web-0"
	h.start(t, pod)
	if got := h.hear(t); got != "web-0 web-0" {
		t.Errorf("the container is %q", got)
	}
	if now, _ := os.Hostname(); now != before {
		t.Errorf("the machine is called %q now", now)
	}
}

// A volume inside of a volume: its place is made there, and links of a container lead nowhere.
func TestAMountInsideOfAnother(t *testing.T) {
	h := newHost(t)
	h.options.Objects = settings("hello")
	openViewed(t, h)
	outside := t.TempDir()
	pod := contentPod("pod", `cat /opt/app/keys/greeting > `+h.pipe+`; echo > `+h.pipe+`; rm -rf /opt/app; mv /opt/app /opt/old; ln -s `+outside+` /opt/app; exit 1`)
	pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: "opt", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}})
	container0(pod).VolumeMounts = []v1.VolumeMount{{Name: "settings", MountPath: "/opt/app/keys"}, {Name: "opt", MountPath: "/opt"}}
	h.start(t, pod)
	if got := h.hear(t); got != "hello" {
		t.Errorf("heard %q", got)
	}
	h.awaitExit(t, "pod")
	link := h.podDir("pod").volume("opt") + "/app"
	if err := errors.Join(os.RemoveAll(link), os.Symlink(outside, link)); err != nil {
		t.Fatal(err)
	}
	_, err := h.StartContainer(t.Context(), pod, container0(pod), 1)
	if entries, readErr := os.ReadDir(outside); readErr != nil || len(entries) > 0 {
		t.Errorf("made outside: %v, %v", entries, readErr)
	}
	if err == nil {
		t.Error("the container was started in spite of a link in the way of its volume")
	}
	h.awaitAllExited(t, "pod")
}

// The root directory as a read-only volume leaves other volumes and the termination log writable.
func TestTheRootAsAReadOnlyVolume(t *testing.T) {
	h := newHost(t)
	openViewed(t, h)
	pod := scriptPod("pod", `touch $STATUSD_MOUNT_HOST`+h.pipe+`.new 2> /dev/null || touch $STATUSD_MOUNT_DATA/file && echo bye > $STATUSD_TERMINATION_LOG`)
	pod.Spec.Volumes = []v1.Volume{
		{Name: "host", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/"}}},
		{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
	}
	container0(pod).VolumeMounts = []v1.VolumeMount{{Name: "host", MountPath: "/host", ReadOnly: true}, {Name: "data", MountPath: "/data"}}
	h.start(t, pod)
	if c := h.awaitExit(t, "pod"); c.ExitCode != 0 || c.Message != "bye\n" {
		t.Errorf("got %+v", c)
	}
	if _, err := os.Stat(h.pipe + ".new"); err == nil {
		t.Error("the root directory can be written")
	}
}
