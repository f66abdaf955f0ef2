package process

import (
	"fmt"
	"os"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/runtime"
	"github.com/statusd/statusd/runtime/process/internal/record"
)

// While a package is upgraded, a statusd of the earlier release starts the shim of the new one: with
// the directory as argument, in the root directory.
func TestShimThatIsGivenADirectory_RunsTheContainer(t *testing.T) {
	h := newHost(t)
	h.options.ShimCommand = []string{"/bin/sh", "-c", fmt.Sprintf(`dir=$PWD; cd /; exec %s %s "$dir" "$@"`, os.Args[0], shimArgument)}
	h.open(t)
	id := h.start(t, scriptPod("pod", "echo up > "+h.pipe+"; exec sleep 1000000"))
	if got := h.hear(t); got != "up" {
		t.Error(got)
	}
	var output strings.Builder
	code, err := h.ExecStream(t.Context(), id, []string{"echo", "hello"}, runtime.Streams{Stdout: &output})
	if err != nil || code != 0 || output.String() != "hello\n" {
		t.Errorf("a command: got %d, %v, %q", code, err, output.String())
	}
}

// A pod that an earlier release has started has no group, and its directory is open. It goes on, also
// with another attempt, and what comes later has its own.
func TestPodOfAnEarlierRelease_GoesOn(t *testing.T) {
	h := newHost(t)
	h.options.Objects = settings("hello")
	h.open(t)
	openTheWay(t, h.dir)
	pod := confinedPod(`cat $STATUSD_MOUNT_ETC_SETTINGS/greeting > ` + h.pipe + `; echo > ` + h.pipe + `; echo $(id -G) > ` + h.pipe)
	pod.Spec.Volumes = contentPod("pod", "").Spec.Volumes[:1]
	container0(pod).VolumeMounts = []v1.VolumeMount{{Name: "settings", MountPath: "/etc/settings"}}
	if err := h.StartPod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	h.close()
	var rec podRecord
	dir := podDir(h.dir + "/pods/pod")
	if err := record.Read(dir.record(), &rec); err != nil {
		t.Fatal(err)
	}
	rec.Group = 0
	if err := record.WriteDurably(dir.record(), rec); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{string(dir): traversable, dir.volume("settings"): 0o755} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	h.open(t)
	for attempt := range 2 {
		if _, err := h.StartContainer(t.Context(), pod, container0(pod), attempt); err != nil {
			t.Fatal(err)
		}
		if got := h.hear(t); got != "hello" {
			t.Errorf("attempt %d reads %q", attempt, got)
		}
		if got := h.hear(t); strings.Contains(got, fmt.Sprint(firstPodGroup)[:4]) {
			t.Errorf("attempt %d has the groups %s", attempt, got)
		}
		h.awaitAllExited(t, "pod")
	}
}
