//go:build real

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusd/statusd/runtime/process/internal/namespace"
	"github.com/statusd/statusd/runtime/process/internal/record"
	"github.com/statusd/statusd/runtime/process/internal/shim"
)

// A link that leads out of a volume is no sub-path, and a container cannot put one where only
// statusd writes.
func TestHostilePod_LinkInAVolumeLeadsNowhere(t *testing.T) {
	h := hostileHost(t)
	victim := newVictim(t, h)
	for _, volume := range []string{"config", "empty"} {
		pod := restricted(scriptPod("thief-"+types.UID(volume), "cat /run/statusd-test-stolen/greeting; exit 3"), 1999)
		addSettings(pod, "config", "/run/statusd-test-config")
		addEmptyDir(pod, "empty", "/run/statusd-test-empty")
		dir := h.podDir(pod.UID).volume(volume)
		first := container0(pod).DeepCopy()
		first.Name, first.VolumeMounts = "first", nil // so that the volume is not read-only for it
		first.Command = []string{"/bin/sh", "-c", "chmod u+w " + dir + "; ln -s " + victim.Pod + "/volumes/creds/..data " + dir + "/evil"}
		container0(pod).VolumeMounts = append(container0(pod).VolumeMounts, v1.VolumeMount{Name: volume, MountPath: "/run/statusd-test-stolen", SubPath: "evil"})
		pod.Spec.InitContainers = []v1.Container{*first}
		if err := h.StartPod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		if _, err := h.StartContainer(t.Context(), pod, first, 0); err != nil {
			t.Fatal(err)
		}
		h.awaitExit(t, pod.UID)
		if _, err := os.Lstat(dir + "/evil"); (err == nil) != (volume == "empty") {
			t.Errorf("%s: the link of the container: %v", volume, err)
		}
		if volume == "config" { // as if there had been a way
			if err := os.Symlink(victim.Pod+"/volumes/creds/..data", dir+"/evil"); err != nil {
				t.Fatal(err)
			}
		}
		if id, err := h.StartContainer(t.Context(), pod, container0(pod), 0); err == nil {
			t.Errorf("%s: container %s was started with a volume of another pod", volume, id)
		}
	}
}

// A directory that becomes a link between the check and the mount is not followed either.
func TestHostilePod_SwappedSubPathLeadsNowhere(t *testing.T) {
	h := hostileHost(t)
	victim := newVictim(t, h)
	pod := restricted(scriptPod("thief", "cat /run/statusd-test-swapped/greeting && exit 3; exit 0"), 1999)
	addEmptyDir(pod, "empty", "/run/statusd-test-swapped")
	container0(pod).VolumeMounts[0].SubPath = "sub"
	if err := h.StartPod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	dir := h.podDir(pod.UID).volume("empty")
	if err := errors.Join(os.Mkdir(dir+"/sub", 0o777), os.Symlink(victim.Pod+"/volumes/creds/..data", dir+"/evil")); err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan error)
	go func() {
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if err := unix.Renameat2(unix.AT_FDCWD, dir+"/sub", unix.AT_FDCWD, dir+"/evil", unix.RENAME_EXCHANGE); err != nil {
				<-stop
				stopped <- err
				return
			}
		}
	}()
	started := 0
	for attempt := 0; attempt < 5000 && started < 20; attempt++ {
		id, err := h.StartContainer(t.Context(), pod, container0(pod), attempt)
		if err != nil {
			continue // it was the link when it was looked at
		}
		started++
		h.awaitAllExited(t, pod.UID)
		h.Runtime.mu.Lock()
		c, err := h.find(id)
		h.Runtime.mu.Unlock()
		if err != nil || c.view.ExitCode == 3 {
			t.Errorf("attempt %d read the secret of another pod (%v)", attempt, err)
			break
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	if started == 0 {
		t.Error("no attempt started: the test shows nothing")
	}
}

// What a restricted pod mounts leaves nothing on the machine, wherever it mounts.
func TestHostilePod_MountPathsLeaveNothingOnTheMachine(t *testing.T) {
	h := hostileHost(t)
	for i, path := range []string{"/run/statusd-test-nologin", "/run/systemd/system/statusd-test.service", "/statusd-test-new/deep", "/etc/statusd-test", "/tmp/statusd-test-new"} {
		pod := restricted(scriptPod("thief-"+types.UID(strconv.Itoa(i)), `[ "$(cat `+path+`)" = hello ] && exit 7`), 1999)
		addSettings(pod, "config", path)
		container0(pod).VolumeMounts[0].SubPath = "greeting"
		h.start(t, pod)
		if c := h.awaitExit(t, pod.UID); c.ExitCode != 7 {
			t.Errorf("%s: the file is not there: %+v", path, c)
		}
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is on the machine: %v", path, err)
		}
	}
}

// bindReadOnly makes a directory of the machine read-only for all, as an administrator does.
func bindReadOnly(t *testing.T, dir string) {
	t.Helper()
	err := unix.Mount(dir, dir, "", unix.MS_BIND, "")
	if err == nil {
		t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
		err = unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What the machine has made read-only stays so: in a hostPath that asks for no more, and below
// what stays writable under a read-only root.
func TestHostilePod_ReadOnlyStaysReadOnly(t *testing.T) {
	h := hostileHost(t)
	shared, err := os.MkdirTemp("/dev/shm", "statusd-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(shared) })
	etc := t.TempDir()
	openTheWay(t, etc)
	for _, dir := range []string{etc, shared} {
		bindReadOnly(t, dir)
	}
	for _, readOnlyRoot := range []bool{false, true} {
		pod := scriptPod("pod-"+types.UID(strconv.FormatBool(readOnlyRoot)), strings.Join([]string{
			`touch /run/statusd-test-etc/file && exit 3`, `touch ` + shared + `/file && exit 4`, `touch ` + etc + `/file && exit 5`,
			`touch /statusd-test-data/file || exit 6`, `touch /dev/shm/$STATUSD_TEST || exit 7`, `rm /dev/shm/$STATUSD_TEST; exit 0`,
		}, "\n"))
		container0(pod).SecurityContext = &v1.SecurityContext{ReadOnlyRootFilesystem: &readOnlyRoot}
		container0(pod).Env = []v1.EnvVar{{Name: "STATUSD_TEST", Value: filepath.Base(shared) + "-file"}}
		pod.Spec.Volumes = []v1.Volume{{Name: "etc", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: etc}}}}
		mountAt(pod, "etc", "/run/statusd-test-etc")
		addEmptyDir(pod, "data", "/statusd-test-data")
		h.start(t, pod)
		if c := h.awaitExit(t, pod.UID); c.ExitCode != 0 {
			t.Errorf("readOnlyRootFilesystem %t: got exit code %d, want 0", readOnlyRoot, c.ExitCode)
		}
	}
}

// A mount is there, and the same in each attempt, or the container is not started.
func TestMountPathThatDoesNotExist_IsMadeForTheContainer(t *testing.T) {
	h := hostileHost(t)
	pod := restricted(scriptPod("pod", "mkdir -p /statusd-test-data && echo $STATUSD_CONTAINER_ID >> /statusd-test-data/file; wc -l < /statusd-test-data/file > "+h.pipe), 1999)
	addEmptyDir(pod, "data", "/statusd-test-data")
	if err := h.StartPod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	for attempt, want := range []string{"1", "2", "3"} {
		if _, err := h.StartContainer(t.Context(), pod, container0(pod), attempt); err != nil {
			t.Fatal(err)
		}
		if got := h.hear(t); got != want {
			t.Errorf("attempt %d finds %s lines, want %s", attempt, got, want)
		}
		h.awaitAllExited(t, "pod")
	}
	if _, err := os.Lstat("/statusd-test-data"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the mount path is on the machine: %v", err)
	}
}

// A chart that mounts /etc of the machine somewhere, read-only, and its own config below /etc gets both, whether or not the place
// of the config exists.
func TestMountPathBelowAMountedHostPath_IsMadeForTheContainer(t *testing.T) {
	h := hostileHost(t)
	machine := t.TempDir()
	openTheWay(t, machine)
	if err := os.WriteFile(machine+"/passwd", []byte("users"), 0o644); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct{ readOnly, readOnlyRoot bool }{{true, false}, {true, true}, {false, true}, {false, false}} {
		pod := restricted(scriptPod("pod-"+types.UID(strconv.Itoa(i)), strings.Join([]string{
			`[ "$(cat ` + machine + `/app/app.conf)" = hello ] || exit 3`, `[ "$(cat ` + machine + `/passwd)" = users ] || exit 4`,
			`[ "$(cat /run/statusd-test-host/passwd)" = users ] || exit 5`, `[ -e /run/statusd-test-host/app ] && exit 6`, `exit 0`,
		}, "\n")), 1999)
		container0(pod).SecurityContext.ReadOnlyRootFilesystem = &c.readOnlyRoot
		pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: "machine", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: machine}}})
		mountAt(pod, "machine", "/run/statusd-test-host")
		container0(pod).VolumeMounts[0].ReadOnly = c.readOnly
		addSettings(pod, "config", machine+"/app/app.conf")
		container0(pod).VolumeMounts[1].SubPath = "greeting"
		h.start(t, pod)
		if got := h.awaitExit(t, pod.UID); got.ExitCode != 0 {
			t.Errorf("%+v: got exit code %d (%s), want 0", c, got.ExitCode, got.Message)
		}
	}
	if _, err := os.Lstat(machine + "/app"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the mount path is on the machine: %v", err)
	}
}

// A directory of the machine at its own path inside of an emptyDir is there, as with /var/log in a /var of the pod.
func TestHostPathInsideOfAnotherMount_IsThere(t *testing.T) {
	h := hostileHost(t)
	machine := t.TempDir()
	openTheWay(t, machine)
	if err := errors.Join(os.Mkdir(machine+"/log", 0o755), os.WriteFile(machine+"/log/syslog", []byte("lines"), 0o644), os.WriteFile(machine+"/other", nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	pod := scriptPod("pod", `[ "$(cat `+machine+`/log/syslog)" = lines ] || exit 3; [ "$(ls `+machine+`)" = log ] || exit 4; exit 0`)
	pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: "log", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: machine + "/log"}}})
	mountAt(pod, "log", machine+"/log")
	addEmptyDir(pod, "var", machine)
	h.start(t, pod)
	if got := h.awaitExit(t, pod.UID); got.ExitCode != 0 {
		t.Errorf("got exit code %d (%s), want 0", got.ExitCode, got.Message)
	}
}

// A machine may have thousands of disks. That its /dev cannot be covered for the termination log, which a pod gets without
// asking, starts no container less; a mount path that was asked for is an error.
func TestMountPathInAHugeDirectory_IsLeftOutIfOptional(t *testing.T) {
	huge := t.TempDir()
	for i := range 4100 {
		if err := os.WriteFile(filepath.Join(huge, fmt.Sprint("disk", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, optional := range []bool{true, false} {
		m := record.Mount{Source: log, Target: filepath.Join(huge, "termination-log"), Optional: optional}
		var err error
		names := 0
		shim.OnOwnThread(func() {
			if err = namespace.Enter(&record.View{Mounts: []record.Mount{m}}); err == nil {
				entries, _ := os.ReadDir(huge)
				names = len(entries)
			}
		})
		if (err == nil) != optional || optional && names != 4100 {
			t.Errorf("optional %v: got %v and %d names, want an error only if the mount was asked for, and all names", optional, err, names)
		}
	}
}
