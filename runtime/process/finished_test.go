package process

import (
	"errors"
	"os"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/statusd/statusd/runtime"
)

func TestTheVolumesOfAnEndedPodAreRemovedAndItsLogsStay(t *testing.T) {
	h := newHost(t)
	h.open(t)
	shared := t.TempDir()
	pod := scriptPod("pod", "echo hello; echo x > $STATUSD_VOLUME_DATA/file; echo y > $STATUSD_VOLUME_SHARED/file; echo up > "+h.pipe+"; sleep 1000")
	pod.Spec.Volumes = []v1.Volume{
		{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
		{Name: "shared", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: shared}}},
	}
	pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: "shared", MountPath: "/shared"}}
	id := h.start(t, pod)
	h.hear(t)
	if err := h.RemoveVolumes(t.Context(), "pod"); !errors.Is(err, runtime.ErrContainerRunning) {
		t.Errorf("while it runs: got %v, want %v", err, runtime.ErrContainerRunning)
	}
	if err := h.StopContainer(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	h.awaitExit(t, "pod")
	for range 2 { // a second time there is nothing to do
		if err := h.RemoveVolumes(t.Context(), "pod"); err != nil {
			t.Errorf("after the end: %v", err)
		}
	}
	left := strings.Join(files(t, h.dir), "\n")
	if strings.Contains(left, "/volumes") || !strings.Contains(left, "/logs/log") || !strings.Contains(left, "/exit.json") {
		t.Errorf("left after the end:\n%s\nwant logs and records without volumes", left)
	}
	if _, err := os.Stat(shared + "/file"); err != nil {
		t.Errorf("what a hostPath volume names: %v", err)
	}
	if err := h.RemoveVolumes(t.Context(), "unknown"); err != nil {
		t.Errorf("an unknown pod: %v", err)
	}
	h.close()
	h.open(t) // a restart finds the pod without volumes
	if _, err := h.Pod(t.Context(), "pod"); err != nil {
		t.Errorf("after a restart: %v", err)
	}
}

func TestPortsAreThoseOfTheMachine(t *testing.T) {
	if !runtime.SharesHostNetwork(&Runtime{}) {
		t.Error("a process listens on the ports of the machine, and the runtime denies it")
	}
}
